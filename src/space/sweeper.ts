import { Failure, messageOf } from "../base/failure.ts";
import { isReadOnly } from "../base/os_error.ts";
import type { ChangeWriter, KeptFile } from "../metadata/metadata_store.ts";
import type { PendingFile, SpaceKeeper } from "../metadata/space_keeper.ts";
import type { StoredName } from "../nix/stored_name.ts";
import { clock } from "../runtime/current.ts";
import type { NarWriter } from "../storage/nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";

/** The outage of the store itself has the remedy. */
const STORE_IS_UNAVAILABLE = "nothing: larder removes it when the store answers again";

/** A store that is away fails as many calls, not those of all marked objects. */
const REMOVALS_AT_ONCE = 64;

export interface SweeperDeps {
  readonly metadata: ChangeWriter & Pick<SpaceKeeper, "pendingFiles">;
  readonly nars: Pick<NarWriter, "remove" | "isSilent">;
  /** This process, in the marks of files. */
  readonly owner: string;
  /**
   * How long a marked object stays, where a store closes the objects that it removes. A reader that
   * found its row needs the time until the store sends; default: none.
   */
  readonly graceMs?: number;
  readonly log: Logger;
}

/** A file that is gone from the storage and the accounts. */
export interface SweptFile extends PendingFile {
  /** False where the object was gone before: its removal freed nothing. */
  readonly wasHere: boolean;
}

/**
 * Removes stored objects that are marked for removal, then their marks. Names are never reused, so
 * no writer waits for a removal. Open files survive their removal. Other stores have a grace time.
 */
export class Sweeper {
  readonly #deps: SweeperDeps;
  readonly #outage;
  /** Marked objects that could not be removed: the outage lasts as long as one is left. */
  readonly #stuck = new Set<StoredName>();
  #isStoreUnavailable = false;
  /** Marked by this process, and pending at the last look for objects that are left. */
  #pending: ReadonlySet<StoredName> = new Set();

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "nars-removed");
  }

  /** False for a store on another machine: only such a store has a grace time. */
  get freesThisDisk(): boolean {
    return (this.#deps.graceMs ?? 0) === 0;
  }

  /** The store does not answer, or removed nothing of late, as it takes no change. */
  get isStoreUnavailable(): boolean {
    return this.#deps.nars.isSilent === true || this.#isStoreUnavailable && this.#stuck.size > 0;
  }

  /**
   * Marks a kept file for removal, and sweeps it. Its replacement, if any, stays. "lost": it is
   * missing or damaged.
   */
  async markAndSweep({ at, fileSize }: KeptFile, why?: "lost"): Promise<void> {
    const { metadata, owner } = this.#deps;
    await metadata.apply([{ kind: "nar-marked", at, owner, isLost: why === "lost" }]);
    await this.sweep([{ at, owner, fileSize }]);
  }

  /**
   * Resolves to the files that were removed from the storage and the accounts. A file that cannot
   * be removed stays counted. The log names the first of an outage, and says when all are gone.
   */
  async sweep(marked: readonly PendingFile[]): Promise<readonly SweptFile[]> {
    const { graceMs = 0 } = this.#deps;
    if (graceMs > 0 && marked.length > 0) await clock.pause(graceMs);
    const gone: SweptFile[] = [];
    for (let begin = 0; begin < marked.length;) {
      const end = begin + (this.isStoreUnavailable ? 1 : REMOVALS_AT_ONCE);
      const outcomes = await Promise.all(
        marked.slice(begin, end).map((file) => this.#remove(file)),
      );
      const removed = outcomes.filter((file) => file !== undefined);
      await this.#deps.metadata.apply(
        removed.map(({ at }) => ({ kind: "nar-gone" as const, at })),
      );
      gone.push(...removed);
      // Nothing that comes is of use: the rest stays marked.
      if (this.isStoreUnavailable) break;
      begin = end;
    }
    return gone;
  }

  /** Sweeps the files that this process has marked but not removed. */
  async sweepOwn(): Promise<readonly SweptFile[]> {
    return await this.sweep(await this.#ownFiles());
  }

  /**
   * The same for the files that were marked at the last call already: each sweep has ended since
   * that could still have removed them.
   */
  async sweepLeft(): Promise<readonly SweptFile[]> {
    const own = await this.#ownFiles();
    const left = own.filter(({ at }) => this.#pending.has(at));
    this.#pending = new Set(own.map(({ at }) => at));
    return await this.sweep(left);
  }

  async #ownFiles(): Promise<readonly PendingFile[]> {
    const { metadata, owner } = this.#deps;
    const pending = await metadata.pendingFiles();
    this.#forgetSettled(pending);
    return pending.filter((file) => file.owner === owner && file.fileSize > 0);
  }

  /** Another process may have removed the objects that this one could not remove. */
  #forgetSettled(pending: readonly PendingFile[]): void {
    const names = new Set(pending.map(({ at }) => at));
    for (const at of this.#stuck) if (!names.has(at)) this.#stuck.delete(at);
  }

  /** `undefined` for a file that cannot be removed now. */
  async #remove(file: PendingFile): Promise<SweptFile | undefined> {
    const { at, fileSize } = file;
    try {
      const wasHere = await this.#deps.nars.remove(at);
      this.#isStoreUnavailable = false;
      this.#stuck.delete(at);
      if (this.#stuck.size === 0) this.#outage.worked();
      return { ...file, wasHere };
    } catch (error) {
      // Nobody tries again to remove an object without a mark.
      if (fileSize > 0) this.#stuck.add(at);
      const isUnavailable = error instanceof Failure && error.kind === "unavailable";
      this.#isStoreUnavailable = isUnavailable || isReadOnly(error);
      const hint = isUnavailable ? { hint: STORE_IS_UNAVAILABLE } : {};
      this.#outage.failed("nar-not-removed", { nar: at, error: messageOf(error), ...hint });
      return undefined;
    }
  }
}
