import { Notifier } from "../../base/notifier.ts";
import { PREFETCHED_HEADER } from "../../base/command_request.ts";
import { formatBytes } from "../../base/format_units.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { NARINFO_TEXT_MAX, parseNarinfo } from "../../nix/narinfo_parse.ts";
import { hashOfBaseName, type StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import type { FailedPath } from "./each.ts";
import { fileBytesMaxOf, NAR_IDLE_MAX_MS } from "./bounded_nar.ts";
import { answerText } from "./server_answer.ts";
import { type ServerClient, ServerRefusal, Unreachable } from "./server_client.ts";

/** Progress of fetching a closure. Sizes are those of NAR files, in bytes. */
export interface WarmProgress {
  readonly pathsDone: number;
  readonly pathsKnown: number;
  readonly bytesDone: number;
  /** Sum of the FileSizes in the narinfos read so far. */
  readonly bytesKnown: number;
}

/** A part of the closure: store paths with a narinfo and a whole NAR file, and these files. */
export interface WarmPart {
  readonly paths: number;
  readonly nars: number;
  readonly bytes: number;
}

export interface WarmDeps {
  readonly client: Pick<ServerClient, "request">;
  /** Pauses before each retry. */
  readonly retryDelaysMs: readonly number[];
  /** False: fetches the roots alone, without their references. Default: their closures. */
  readonly followsReferences?: boolean;
}

const AT_ONCE = 8;

/** Limit while NARs wait, so that NARs do not wait for the last narinfo. */
const NARINFOS_AT_ONCE = 4;

export const WARM_PATHS_MAX = 100_000;

/** The reason for a path that the server answers with 404. */
export const NOT_FOUND = "not found, here and upstream (404)";

const NARINFO_RETRIES_MAX = 2;
const READ_BYTES = 256 * 1024;

/** Statuses that a retry does not change. */
const FINAL_STATUSES: readonly number[] = [400, 401, 403, 405];

interface Path {
  /** The base name, or the hash if the name is unknown. */
  readonly name: string;
  references: readonly StorePathHash[];
  nar?: Nar;
  problem?: string;
}

interface Nar {
  readonly url: string;
  readonly fileSize: number;
  readonly fileBytesMax: number;
  paths: number;
  isWhole: boolean;
  /** It was stored before, and not by a prefetch for this closure. */
  wasHere: boolean;
}

/** Fetches closures through a server: each narinfo and each NAR file once. */
export class WarmClosure {
  readonly #deps: WarmDeps;
  readonly #paths = new Map<StorePathHash, Path>();
  readonly #order: StorePathHash[] = [];
  readonly #nars = new Map<string, Nar>();
  readonly #waitingNars: [Nar, Path][] = [];
  readonly #changed = new Notifier();
  readonly #at = { narinfo: 0, nar: 0 };
  readonly #active = { narinfo: 0, nar: 0 };
  readonly #progress = { pathsDone: 0, bytesDone: 0, bytesKnown: 0 };
  #bytesHere = 0;
  #fatal: unknown;

  constructor(deps: WarmDeps) {
    this.#deps = deps;
  }

  get progress(): WarmProgress {
    return { ...this.#progress, pathsKnown: this.#order.length };
  }

  /** What was fetched in full. */
  get fetched(): WarmPart {
    return { ...this.#partWhere(false), bytes: this.#progress.bytesDone - this.#bytesHere };
  }

  /** What the server had stored already. */
  get alreadyHere(): WarmPart {
    return { ...this.#partWhere(true), bytes: this.#bytesHere };
  }

  /** The failed paths, in order of discovery. */
  get failures(): readonly FailedPath[] {
    return [...this.#paths.values()].flatMap(({ name, problem }) =>
      problem === undefined ? [] : [{ name, reason: problem }]
    );
  }

  /**
   * Resolves when everything that the roots reach was tried. Throws if going on is pointless: the
   * server is unreachable or refuses, or the closure exceeds the limit.
   */
  async run(roots: readonly { storePathHash: StorePathHash; name: string }[]): Promise<void> {
    for (const { storePathHash, name } of roots) this.#know(storePathHash, name);
    await Promise.all(Array.from({ length: AT_ONCE }, () => this.#work()));
    if (this.#fatal !== undefined) throw this.#fatal;
  }

  /** True when the closure of the root was fetched in full. */
  isComplete(root: StorePathHash): boolean {
    const seen = new Set([root]);
    for (const storePathHash of seen) {
      const path = this.#paths.get(storePathHash);
      if (!path?.nar?.isWhole) return false;
      for (const reference of path.references) seen.add(reference);
    }
    return true;
  }

  #partWhere(wasHere: boolean): Omit<WarmPart, "bytes"> {
    const isPart = (nar: Nar | undefined) => nar?.isWhole === true && nar.wasHere === wasHere;
    return {
      paths: [...this.#paths.values()].filter(({ nar }) => isPart(nar)).length,
      nars: [...this.#nars.values()].filter(isPart).length,
    };
  }

  #know(storePathHash: StorePathHash, name: string): void {
    if (this.#paths.has(storePathHash)) return;
    if (this.#order.length === WARM_PATHS_MAX) {
      throw new Failure("bad-request", `Cannot fetch closure: over ${WARM_PATHS_MAX} paths`);
    }
    this.#paths.set(storePathHash, { name, references: [] });
    this.#order.push(storePathHash);
  }

  async #work(): Promise<void> {
    while (this.#fatal === undefined) {
      const job = this.#take();
      if (job !== undefined) {
        this.#active[job.kind]++;
        await job.run().catch((error) => this.#fatal ??= error);
        this.#active[job.kind]--;
        this.#changed.notify();
      } else if (this.#active.narinfo + this.#active.nar === 0) return this.#changed.notify();
      else await this.#changed.notified();
    }
  }

  #take(): { readonly kind: "narinfo" | "nar"; run(): Promise<void> } | undefined {
    const storePathHash = this.#order[this.#at.narinfo];
    const waiting = this.#waitingNars[this.#at.nar];
    const isNarsTurn = storePathHash === undefined || this.#active.narinfo >= NARINFOS_AT_ONCE;
    if (waiting !== undefined && isNarsTurn) {
      this.#at.nar++;
      return { kind: "nar", run: () => this.#fetchNar(...waiting) };
    }
    if (storePathHash === undefined) return undefined;
    this.#at.narinfo++;
    return { kind: "narinfo", run: () => this.#fetchNarinfo(storePathHash) };
  }

  async #fetchNarinfo(storePathHash: StorePathHash): Promise<void> {
    const path = this.#paths.get(storePathHash);
    if (path === undefined) return;
    // Most are absent, and retries change nothing.
    const delaysMs = this.#deps.retryDelaysMs.slice(0, NARINFO_RETRIES_MAX);
    const narinfo = await this.#tried(path, delaysMs, () => this.#narinfo(storePathHash));
    if (narinfo === undefined) return void this.#progress.pathsDone++;
    path.references = narinfo.references.map(hashOfBaseName);
    if (this.#deps.followsReferences ?? true) {
      for (const baseName of narinfo.references) this.#know(hashOfBaseName(baseName), baseName);
    }
    const { url, fileSize = 0 } = narinfo;
    const known = this.#nars.get(url);
    const fileBytesMax = fileBytesMaxOf(narinfo);
    const nar = known ?? { url, fileSize, fileBytesMax, paths: 0, isWhole: false, wasHere: false };
    path.nar = nar;
    if (nar.isWhole) return void this.#progress.pathsDone++;
    nar.paths++;
    if (known !== undefined) return;
    this.#nars.set(url, nar);
    this.#waitingNars.push([nar, path]);
    this.#progress.bytesKnown += fileSize;
  }

  async #narinfo(storePathHash: StorePathHash): Promise<Narinfo> {
    const limits = { bytesMax: NARINFO_TEXT_MAX };
    const text = await answerText(this.#deps.client, `/${storePathHash}.narinfo`, limits);
    const narinfo = parseNarinfo(text);
    if (narinfo.storePathHash === storePathHash) return narinfo;
    throw new Failure("corrupt", `the narinfo is that of ${narinfo.baseName}`);
  }

  async #fetchNar(nar: Nar, path: Path): Promise<void> {
    const whole = await this.#tried(path, this.#deps.retryDelaysMs, () => this.#drain(nar));
    nar.isWhole = whole === true;
    this.#progress.pathsDone += nar.paths;
  }

  /** Reads a NAR file to its end and drops the bytes, which the server keeps. */
  async #drain(nar: Nar): Promise<true> {
    const { url, fileSize, fileBytesMax } = nar;
    const base = "http://server/";
    const { origin, pathname, search } = new URL(url, base);
    if (`${origin}/` !== base) throw new Failure("corrupt", "its NAR is on another server");
    const { body, headers } = await this.#deps.client.request("GET", `${pathname}${search}`);
    nar.wasHere = headers.get("x-cache") === "HIT" && headers.get(PREFETCHED_HEADER) === null;
    if (body === null) throw new Failure("corrupt", "its NAR file is empty");
    const reader = body.getReader({ mode: "byob" });
    let received = 0;
    let isOver = false;
    try {
      for (let buffer = new ArrayBuffer(READ_BYTES);;) {
        const read = await clock.within(reader.read(new Uint8Array(buffer)), NAR_IDLE_MAX_MS);
        if (read === undefined) throw new Failure("corrupt", "its NAR file stalled");
        if (read.done) break;
        buffer = read.value.buffer;
        received += read.value.byteLength;
        this.#progress.bytesDone += read.value.byteLength;
        if (received > fileBytesMax) {
          throw new Failure("corrupt", `its NAR file is over ${formatBytes(fileBytesMax)}`);
        }
      }
      if (fileSize > 0 && received !== fileSize) {
        throw new Failure("corrupt", `got ${received} of ${fileSize} bytes of its NAR file`);
      }
      isOver = true;
      if (nar.wasHere) this.#bytesHere += received;
      return true;
    } finally {
      if (!isOver) {
        // The next try receives these bytes again.
        this.#progress.bytesDone -= received;
        await reader.cancel().catch(() => undefined);
      }
    }
  }

  /** `undefined` if the last try failed too; the path then has the reason. */
  async #tried<Value>(
    path: Path,
    delaysMs: readonly number[],
    work: () => Promise<Value>,
  ): Promise<Value | undefined> {
    for (const delayMs of [...delaysMs, undefined]) {
      try {
        const value = await work();
        delete path.problem;
        return value;
      } catch (error) {
        const isFinal = error instanceof ServerRefusal && FINAL_STATUSES.includes(error.status);
        if (isFinal || (error instanceof Unreachable && delayMs === undefined)) throw error;
        path.problem = reasonOf(error);
        if (delayMs === undefined || this.#fatal !== undefined) return undefined;
        await clock.pause(delayMs);
      }
    }
    return undefined;
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof ServerRefusal && error.status === 404) return NOT_FOUND;
  return error instanceof Failure ? error.message : `broken on the way: ${messageOf(error)}`;
}
