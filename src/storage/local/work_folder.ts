import { createHash } from "node:crypto";
import { messageOf } from "../../base/failure.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** How often a process says that it lives, by its folder's time. */
const BEAT_EVERY_MS = 30_000;

/** Whoever said nothing for so long is dead, where its process cannot be looked for. */
const SILENT_MAX_MS = 10 * 60 * 1_000;

/**
 * Growing files beside the folders are from before there were folders. A stalled upstream is given
 * up after half a minute, and checking the largest NAR takes minutes.
 */
const STRAY_AGE_MS = 60 * 60 * 1_000;

/** Machine, name space of process ids, process id, and what sets it apart from its predecessor. */
const OWNER_REGEXP = /^([0-9a-f]{8})-([0-9]+)-([0-9]+)-([0-9a-f]{8})$/;

export interface WorkFolderDeps {
  readonly hostname: string;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/**
 * This process's own folder for growing files, inside the one that every process on the storage
 * shares. What it holds when its process is dead is removed by whoever looks next. It holds
 * nothing else: all of it counts towards the limit.
 */
export class WorkFolder implements Disposable {
  /** Names the process; also the folder's name. */
  readonly owner: string;
  readonly path: string;
  readonly #base: string;
  readonly #deps: WorkFolderDeps;
  readonly #place: string;
  readonly #timer: number;
  #othersBytes = 0;

  /** Throws when the folder cannot be made. */
  constructor(base: string, deps: WorkFolderDeps) {
    this.#base = base;
    this.#deps = deps;
    const machine = createHash("sha256").update(deps.hostname).digest("hex").slice(0, 8);
    this.#place = `${machine}-${pidNamespace()}`;
    this.owner = `${this.#place}-${Deno.pid}-${crypto.randomUUID().slice(0, 8)}`;
    this.path = `${base}/${this.owner}`;
    Deno.mkdirSync(this.path);
    this.#timer = setInterval(() => this.#beat(), BEAT_EVERY_MS);
  }

  /** What lay beside this folder when it was last looked at: other processes' growing files. */
  get othersBytes(): number {
    return this.#othersBytes;
  }

  /** False when that process is dead. */
  isAlive(owner: string): boolean {
    if (owner === this.owner) return true;
    const [, machine, namespace, pid] = OWNER_REGEXP.exec(owner) ?? [];
    if (pid === undefined) return false;
    const isHere = `${machine}-${namespace}` === this.#place && namespace !== "0";
    // A process id that is ours now was somebody's who is dead.
    if (isHere && (Number(pid) === Deno.pid || !exists(`/proc/${pid}`))) return false;
    const agedMs = ageMs(`${this.#base}/${owner}`, this.#deps.nowMs());
    return agedMs !== undefined && agedMs < SILENT_MAX_MS;
  }

  /** Removes what dead processes left, and counts what the living have. Failures are logged. */
  survey(): void {
    const { log } = this.#deps;
    let othersBytes = 0;
    try {
      for (const { name } of [...Deno.readDirSync(this.#base)]) {
        if (name === this.owner) continue;
        const path = `${this.#base}/${name}`;
        if (this.#isAbandoned(name)) this.#remove(path);
        else othersBytes += bytesIn(path);
      }
    } catch (error) {
      log.warn("orphans not looked for", { path: this.#base, error: messageOf(error) });
    }
    this.#othersBytes = othersBytes;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#remove(this.path);
  }

  #isAbandoned(name: string): boolean {
    if (OWNER_REGEXP.test(name)) return !this.isAlive(name);
    if (!name.endsWith(".part")) return false;
    return (ageMs(`${this.#base}/${name}`, this.#deps.nowMs()) ?? 0) >= STRAY_AGE_MS;
  }

  #beat(): void {
    const now = new Date(this.#deps.nowMs());
    try {
      Deno.utimeSync(this.path, now, now);
    } catch (error) {
      this.#deps.log.warn("temporary folder is gone", {
        path: this.path,
        error: messageOf(error),
      });
    }
  }

  #remove(path: string): void {
    const { log } = this.#deps;
    try {
      Deno.removeSync(path, { recursive: true });
      if (path !== this.path) log.info("orphan removed", { path });
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return;
      log.warn("orphan not removed", { path, error: messageOf(error) });
    }
  }
}

/** Time since the last change; `undefined` where there is nothing. */
function ageMs(path: string, nowMs: number): number | undefined {
  try {
    const { mtime } = Deno.statSync(path);
    return mtime === null ? 0 : nowMs - mtime.getTime();
  } catch (error) {
    return error instanceof Deno.errors.NotFound ? undefined : 0;
  }
}

function exists(path: string): boolean {
  return ageMs(path, 0) !== undefined;
}

/** Of a file, or of the files in a folder. */
function bytesIn(path: string): number {
  try {
    const { isDirectory, size } = Deno.statSync(path);
    if (!isDirectory) return size;
    return [...Deno.readDirSync(path)].reduce(
      (sum, { name }) => sum + bytesIn(`${path}/${name}`),
      0,
    );
  } catch {
    // It went away meanwhile, or is not for us to read.
    return 0;
  }
}

/** Process ids mean something within one; 0 where the system does not say. */
function pidNamespace(): string {
  try {
    return /[0-9]+/.exec(Deno.readLinkSync("/proc/self/ns/pid"))?.[0] ?? "0";
  } catch {
    return "0";
  }
}
