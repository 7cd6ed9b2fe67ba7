import { messageOf } from "../base/failure.ts";
import type { Change, ChangeWriter } from "../metadata/metadata_store.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Timer } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";

/** The longest delay of a write. A crash loses this much of the order of eviction. */
const FLUSH_EVERY_MS = 5_000;

/** With more entries than this, the write begins at once. */
const WAITING_MAX = 10_000;

/** Touches in one transaction: among a million entries it stops the thread for some 2 ms. */
const WRITTEN_AT_ONCE = 64;

export interface TouchesDeps {
  readonly metadata: ChangeWriter;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** Notes the touches of entries in memory, and writes them in batches. */
export class Touches implements AsyncDisposable {
  readonly #deps: TouchesDeps;
  readonly #timer: Timer;
  #narinfos = new Map<StorePathHash, number>();
  #nars = new Map<NarName, number>();
  #documents = new Map<DocumentPath, number>();
  #writing: Promise<void> = Promise.resolve();
  readonly #outage;

  constructor(deps: TouchesDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "touches-written");
    this.#timer = clock.every(FLUSH_EVERY_MS, () => this.flush());
  }

  narinfo(storePathHash: StorePathHash): void {
    this.#narinfos.set(storePathHash, this.#deps.nowMs());
    if (this.#narinfos.size > WAITING_MAX) this.flush();
  }

  nar(narName: NarName): void {
    this.#nars.set(narName, this.#deps.nowMs());
    if (this.#nars.size > WAITING_MAX) this.flush();
  }

  document(path: DocumentPath): void {
    this.#documents.set(path, this.#deps.nowMs());
    if (this.#documents.size > WAITING_MAX) this.flush();
  }

  /** Resolves when all touches noted so far are written. */
  flush(): Promise<void> {
    const changes: Change[] = [];
    for (const [storePathHash, atMs] of this.#narinfos) {
      changes.push({ kind: "touch-narinfo", storePathHash, atMs });
    }
    for (const [narName, atMs] of this.#nars) changes.push({ kind: "touch-nar", narName, atMs });
    for (const [path, atMs] of this.#documents) {
      changes.push({ kind: "touch-document", path, atMs });
    }
    this.#narinfos = new Map();
    this.#documents = new Map();
    this.#nars = new Map();
    if (changes.length > 0) this.#writing = this.#writing.then(() => this.#write(changes));
    return this.#writing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer.cancel();
    await this.flush();
  }

  /** Notes a touch once more, unless a later one of the same came. */
  #again(change: Change): void {
    if (change.kind === "touch-narinfo") {
      noteOnce(this.#narinfos, change.storePathHash, change.atMs);
    } else if (change.kind === "touch-nar") noteOnce(this.#nars, change.narName, change.atMs);
    else if (change.kind === "touch-document") noteOnce(this.#documents, change.path, change.atMs);
  }

  async #write(changes: readonly Change[]): Promise<void> {
    let written = 0;
    try {
      for (; written < changes.length; written += WRITTEN_AT_ONCE) {
        await this.#deps.metadata.apply(changes.slice(written, written + WRITTEN_AT_ONCE));
      }
      this.#outage.worked();
    } catch (error) {
      const count = changes.length - written;
      this.#outage.failed("touches-not-written", { count, error: messageOf(error) });
      // The next flush tries again. Lost ones only make the order of eviction older.
      for (const change of changes.slice(written, written + WRITTEN_AT_ONCE)) this.#again(change);
    }
  }
}

function noteOnce<Key>(touches: Map<Key, number>, key: Key, atMs: number): void {
  if (!touches.has(key)) touches.set(key, atMs);
}
