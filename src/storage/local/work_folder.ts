import { messageOf } from "../../base/failure.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { isLocked, ProcessLock } from "./process_lock.ts";

/**
 * Growing files beside the folders are from before there were folders. A stalled upstream is given
 * up after half a minute, and checking the largest NAR takes minutes.
 */
const STRAY_AGE_MS = 60 * 60 * 1_000;

const OWNER_REGEXP = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface WorkFolderDeps {
  /** Where each process has its lock; of all that share the storage. */
  readonly locks: string;
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
  readonly owner = crypto.randomUUID();
  readonly path: string;
  readonly #base: string;
  readonly #deps: WorkFolderDeps;
  readonly #lock: ProcessLock;
  #othersBytes = 0;

  /** Throws when the folder or the lock cannot be made. */
  constructor(base: string, deps: WorkFolderDeps) {
    this.#base = base;
    this.#deps = deps;
    this.path = `${base}/${this.owner}`;
    // First: a folder without a lock is a dead process's.
    this.#lock = new ProcessLock(this.#lockOf(this.owner));
    Deno.mkdirSync(this.path);
  }

  /** What lay beside this folder when it was last looked at: other processes' growing files. */
  get othersBytes(): number {
    return this.#othersBytes;
  }

  /** False when that process is dead, or never was. */
  isAlive(owner: string): boolean {
    if (owner === this.owner) return true;
    return OWNER_REGEXP.test(owner) && isLocked(this.#lockOf(owner));
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
    this.#remove(this.path);
    this.#lock[Symbol.dispose]();
  }

  #isAbandoned(name: string): boolean {
    if (OWNER_REGEXP.test(name)) return !this.isAlive(name);
    if (!name.endsWith(".part")) return false;
    return (ageMs(`${this.#base}/${name}`, this.#deps.nowMs()) ?? 0) >= STRAY_AGE_MS;
  }

  #lockOf(owner: string): string {
    return `${this.#deps.locks}/${owner}.lock`;
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
