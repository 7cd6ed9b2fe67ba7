import { Failure, messageOf } from "../base/failure.ts";
import { Notifier } from "../base/notifier.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import { DATABASE } from "../telemetry/events.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import {
  type Change,
  type ChangeOf,
  type ChangeWriter,
  isSameClaim,
  type NarFinder,
  type NarinfoRow,
  NarNameTaken,
  type NarRow,
  type NarSource,
  Outdated,
} from "./metadata_store.ts";

type PutNarinfo = ChangeOf<"put-narinfo">;

/** Changes from an upstream's answers. */
export type UpstreamChange = PutNarinfo | ChangeOf<"put-source"> | ChangeOf<"put-signed">;

/** How long a client's request waits for the database. */
const LATE_AFTER_MS = 500;

/** Lists of changes in memory: some 30 MB, and more than any closure has. */
const LATE_MAX = 10_000;

/** Characters of narinfos in memory: some are a thousand times as long as most. */
const LATE_LENGTH_MAX = 64 << 20;

export interface LateWritesDeps {
  readonly inner: ChangeWriter & Pick<NarFinder, "findNar">;
  /** Called when late changes are written, or given up. */
  readonly landed: (changes: readonly UpstreamChange[]) => void;
  readonly log: Logger;
}

/** True where all changes are from upstreams' answers. */
export function isFromUpstreams(changes: readonly Change[]): changes is readonly UpstreamChange[] {
  return changes.every((change) =>
    change.kind === "put-source" || change.kind === "put-narinfo" && change.onlyIf === undefined ||
    change.kind === "put-signed" && change.unlessOther !== true
  );
}

/**
 * Changes from upstreams' answers, written when the database takes them. While another process
 * locks it, no request waits: larder reads the changes from memory, and writes them later in their
 * order.
 */
export class LateWrites {
  readonly #deps: LateWritesDeps;
  readonly #lists = new Set<readonly UpstreamChange[]>();
  /** The last change of each path. */
  readonly #narinfos = new Map<StorePathHash, PutNarinfo>();
  readonly #nars = new Map<NarName, Set<UpstreamChange>>();
  readonly #outage;
  readonly #late = clock.sharedTimer(LATE_AFTER_MS);
  readonly #soon = clock.sharedTimer(0);
  readonly #removed = new Notifier();
  #length = 0;

  constructor(deps: LateWritesDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "writes-landed");
  }

  /** Resolves when the changes are written, or readable here. Throws as `apply` does. */
  async write(changes: readonly UpstreamChange[]): Promise<void> {
    const { inner } = this.#deps;
    if (this.#lists.size >= LATE_MAX || this.#length >= LATE_LENGTH_MAX) {
      const message = "Cannot keep narinfo: too many wait for the database";
      throw new Failure("unavailable", message, { part: DATABASE, waiting: this.#lists.size });
    }
    const writing = inner.apply(changes, { mustWait: true }).then(() => true as const);
    writing.catch(() => undefined);
    if (await this.#isInTime(writing)) return;
    await this.#refuseTaken(changes);
    this.#add(changes);
    writing.catch((error) => {
      // An upload came first, and stays.
      const level = error instanceof Outdated ? "debug" : "error";
      this.#deps.log.event("narinfo-not-kept", { error: messageOf(error) }, level);
    }).finally(() => this.#remove(changes));
  }

  /** The late narinfo, newer than the database's. */
  narinfo(storePathHash: StorePathHash): NarinfoRow | undefined {
    return this.#narinfos.get(storePathHash)?.row;
  }

  /** The references of a late narinfo. */
  references(storePathHash: StorePathHash): readonly StorePathHash[] | undefined {
    return this.#narinfos.get(storePathHash)?.references;
  }

  /** `undefined` where nothing of the path is late. Else resolves when it landed, or in time. */
  landed(storePathHash: StorePathHash, limitMs: number): Promise<void> | undefined {
    const change = this.#narinfos.get(storePathHash);
    if (change === undefined) return undefined;
    const untilMs = clock.nowMs() + limitMs;
    const isLate = () => this.#narinfos.get(storePathHash) === change;
    return (async () => {
      for (let leftMs = limitMs; leftMs > 0 && isLate(); leftMs = untilMs - clock.nowMs()) {
        await this.#removed.notified(leftMs);
      }
    })();
  }

  nar(narName: NarName): NarRow | undefined {
    for (const change of this.#nars.get(narName) ?? []) {
      if (change.kind === "put-narinfo") return change.nar;
    }
    return undefined;
  }

  sourcesOf(narName: NarName): readonly NarSource[] {
    return [...this.#nars.get(narName) ?? []].flatMap((change) => {
      if (change.kind === "put-narinfo") return change.sources;
      return change.kind === "put-source" ? change.source : [];
    });
  }

  narinfosOf(narName: NarName): readonly StorePathHash[] {
    return [...this.#nars.get(narName) ?? []].flatMap((change) =>
      change.kind === "put-narinfo" ? change.row.storePathHash : []
    );
  }

  /** Never waits behind lists that are late already. Throws the error of `writing`. */
  async #isInTime(writing: Promise<true>): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<false>();
    using _limit = (this.#lists.size > 0 ? this.#soon : this.#late).start(() => resolve(false));
    return await Promise.race([writing, promise]);
  }

  /** A taken name must fail now: later its narinfo has been served. */
  async #refuseTaken(changes: readonly UpstreamChange[]): Promise<void> {
    for (const change of changes) {
      if (change.kind !== "put-narinfo") continue;
      const { name } = change.nar;
      // A row that cannot be read counts as absent.
      const stored = await this.#deps.inner.findNar(name).catch(() => undefined);
      for (const known of [stored, this.nar(name)]) {
        if (known !== undefined && !isSameClaim(known, change.nar)) {
          throw new NarNameTaken(name);
        }
      }
    }
  }

  #add(changes: readonly UpstreamChange[]): void {
    if (this.#lists.size === 0) {
      this.#outage.failed("writes-late");
    }
    this.#lists.add(changes);
    this.#length += lengthOf(changes);
    for (const change of changes) {
      if (change.kind === "put-narinfo") this.#narinfos.set(change.row.storePathHash, change);
      const narName = narNameOf(change);
      if (narName === undefined) continue;
      const ofNar = this.#nars.get(narName) ?? new Set();
      this.#nars.set(narName, ofNar.add(change));
    }
  }

  #remove(changes: readonly UpstreamChange[]): void {
    if (this.#lists.delete(changes)) this.#length -= lengthOf(changes);
    for (const change of changes) {
      const narName = narNameOf(change);
      if (narName === undefined) continue;
      const ofNar = this.#nars.get(narName);
      ofNar?.delete(change);
      if (ofNar?.size === 0) this.#nars.delete(narName);
      if (change.kind !== "put-narinfo") continue;
      const { storePathHash } = change.row;
      if (this.#narinfos.get(storePathHash) === change) this.#narinfos.delete(storePathHash);
    }
    this.#deps.landed(changes);
    this.#removed.notify();
    if (this.#lists.size === 0) this.#outage.worked();
  }
}

function lengthOf(changes: readonly UpstreamChange[]): number {
  return changes.reduce(
    (sum, change) => sum + (change.kind === "put-narinfo" ? change.row.body.length : 0),
    0,
  );
}

/** `undefined` for a change of a path alone. */
function narNameOf(change: UpstreamChange): NarName | undefined {
  if (change.kind === "put-signed") return undefined;
  return change.kind === "put-narinfo" ? change.nar.name : change.narName;
}
