import { EitherSignal } from "../../base/either_signal.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { counted } from "../../base/format_units.ts";
import { lruOf } from "../../base/lru.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import type { WorkLeases } from "../../locks/work_leases.ts";
import type { Changed } from "../../metadata/change_feed.ts";
import {
  LOST_MAX,
  type NarFinder,
  type NarinfoFinder,
  type NarinfoRow,
  type PinFinder,
  type PinLook,
  type PinNoter,
  type PinRoot,
} from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { PinReads } from "../../pins/pins.ts";
import {
  type ClosureLister,
  type ClosurePath,
  type PinnedClosure,
  shownNotes,
} from "../../pins/pinned_closures.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { Downloads } from "../download/downloads.ts";
import type { KeptNars } from "../kept/kept_nars.ts";
import type { FetchedNarinfo, NarinfoFetches } from "../narinfo/narinfo_fetches.ts";

/** Between two looks for pins that are due. */
const TICK_MS = 60_000;
/** larder has answered the requests that its start kept waiting. */
const FIRST_MS = 3_000;
/** Between two judgements: no notice tells of what another member's look found. */
const JUDGE_EVERY_MS = 5_000;

/** Between two counts of all closures by their rows, and two fetches of what stayed missing. */
const AGAIN_MS = 10 * 60_000;

/** The hour of the nightly look, in the time of this machine. */
const NIGHT_HOUR = 3;

/** Paths that are checked, asked for or fetched at once. */
const AT_ONCE = 4;

/** Fetched paths have references, which are fetched next: closures are less deep. */
const ROUNDS_MAX = 200;

/** Upstreams are asked about the missing paths of one closure for so long in one look. */
const ASKING_MAX_MS = 10 * 60_000;

const EXAMPLES_MAX = 5;

const FAILED_MAX = 10_000;

/** The pause between the arrival of a missing path and the look that finds it: more may follow. */
const SETTLE_MS = 1_000;

/** Pause between two such looks, or two judgements, as a factor over the last one's time. */
const SETTLE_FACTOR = 10;

/** Names of missing paths and NARs, of all pins. Of others, the next count tells. */
const AWAITED_MAX = 50_000;

/** The upstreams' last answers about missing paths. */
const ASKED_MAX = 10_000;

/** No count by the rows is that: the next one leads to a look that asks the upstreams. */
const UNLIKE_ANY = -1;

/** In place of names: whatever is missing may have come, and whatever is here may be lost. */
const ANYTHING = "*";

/** A fetch or a question waits so long while clients' requests queue. */
const CLIENTS_FIRST_MAX_MS = 60_000;
const CLIENTS_FIRST_MS = 100;

/** Between two files that are read. */
const PAUSE_MAX_MS = 1_000;

const PROGRESS_EVERY_MS = 1_000;

/** In the log, and where larder counts who waits for a count. */
const REQUEST_ID = "pins";

export interface PinLooksDeps {
  readonly metadata:
    & PinFinder
    & PinNoter
    & NarinfoFinder
    & Pick<NarFinder, "findNar" | "narinfosOf">;
  readonly closures: Pick<ClosureLister, "paths">;
  readonly counts: Pick<PinReads, "closures" | "readLost">;
  readonly kept: Pick<KeptNars, "find" | "verify">;
  readonly narinfoFetches: Pick<NarinfoFetches, "fetch">;
  readonly downloads: Pick<Downloads, "join">;
  readonly pool: Pick<UpstreamPool, "prefetchNarinfo" | "statuses" | "hasQueue">;
  /** `undefined` for a path that larder has not met. */
  readonly nameOf: (storePathHash: StorePathHash) => Promise<string | undefined>;
  readonly leases: Pick<WorkLeases, "pinLook">;
  /** Called with each look. */
  readonly looked: () => void;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** The missing paths of closures by the rows, at their last count. */
type MissingCounts = ReadonlyMap<StorePathHash, number>;

/**
 * What a look looks at: all paths, or those that the last one missed or that may be lost since. It
 * then asks no upstream.
 */
type Scope = "all" | "missing";

/** Pins whose look is due. */
type Due = readonly { readonly storePathHash: StorePathHash; readonly scope: Scope }[];

/** What would end that paths are missing. */
interface Awaited {
  /** The time of the look that found them missing. */
  readonly atMs: number;
  readonly names: ReadonlySet<string>;
}

/** One look at some pins: their closures share paths, which are checked once. */
interface Looking {
  readonly signal: AbortSignal;
  /** True: reads every file, and compares its hash. */
  readonly reads: boolean;
  readonly whole: Set<StorePathHash>;
  /** Where its missing paths are; upstreams are asked once for those that closures share. */
  readonly asked: Map<StorePathHash, Whereabouts>;
  readonly damaged: Set<StorePathHash>;
  readonly progress: { paths: number; bytes: number };
  /** The time of fetches: it is none of looking. */
  fetchMs: number;
}

/** Where a missing path still is: "unknown" while an upstream cannot tell. */
type Whereabouts = "upstream" | "nowhere" | "unknown" | "unasked";

/**
 * Looks at every path of each pinned closure once a night, and soon after a pin, or a change of
 * what its closure lacks. A path is here if its kept file is the verified one. Of the others larder
 * asks the upstreams. Where a pin says so, it fetches them first. Seconds after a missing path has
 * arrived, larder looks at the missing ones again. Seconds after whatever found a kept file lost,
 * it looks at that one in each closure.
 *
 * One member looks at a time, and writes what it found into the pin's row. All members take the
 * problem from there, within seconds.
 */
export class PinLooks implements AsyncDisposable {
  readonly #deps: PinLooksDeps;
  readonly #problem: PinProblem;
  readonly #timer;
  readonly #stopping = new AbortController();
  #judging: Timer;
  /** Reads of the pins, and the last one that the problem was judged by. */
  readonly #judged = { reads: 0, last: 0 };
  /** Pins whose turn is now. */
  readonly #wanted = new Set<StorePathHash>();
  /** When a look at a pin could not tell. */
  readonly #failed = lruOf<StorePathHash, number>({ countMax: FAILED_MAX });
  /** When a count contradicted the last look at a pin. */
  readonly #contradicted = lruOf<StorePathHash, number>({ countMax: FAILED_MAX });
  /** Pins of which a missing path may be here now. */
  readonly #again = new Set<StorePathHash>();
  readonly #awaited = new Map<StorePathHash, Awaited>();
  /** Narinfos and NARs that have come since the last look. */
  readonly #arrived = new Set<string>();
  /** NARs whose kept files were found lost since. */
  readonly #lost = new Set<string>();
  /** Per pin, the paths that may be lost since its last look, if its closure has them. */
  readonly #doubted = new Map<StorePathHash, ReadonlySet<string>>();
  readonly #asked = lruOf<StorePathHash, Whereabouts>({ countMax: ASKED_MAX });
  #settling: Timer | undefined;
  #settledAtMs = -Infinity;
  #settleMs = 0;
  #looking = 0;
  #running: Promise<void> | undefined;
  /** True: another member looks, and the look that is due here cannot wait for the next minute. */
  #isRefused = false;
  #verifying: Promise<unknown> | undefined;
  #countAtMs = -Infinity;

  constructor(deps: PinLooksDeps) {
    this.#deps = deps;
    this.#problem = new PinProblem(deps);
    this.#timer = clock.every(TICK_MS, () => void this.run(), false);
    // What the looks before this start found is a problem still.
    this.#judging = clock.after(FIRST_MS, () => void this.#judgeOften(), false);
  }

  /** Looks at this pin soon. */
  want(root: StorePathHash): void {
    this.#wanted.add(root);
    void this.run();
  }

  /** Narinfos and kept NARs have come: looks soon at the pins that lack one of them. */
  arrived(arrived: Changed): void {
    if (this.#awaited.size === 0 && this.#looking === 0) return;
    if (arrived === "all") {
      // Other processes may write at any time: the look of the next minute is soon enough.
      this.#arrived.add(ANYTHING);
      return;
    }
    const names = [...arrived.storePaths, ...arrived.nars];
    if (names.length === 0) return;
    const isFull = this.#arrived.size >= AWAITED_MAX;
    for (const name of names) this.#arrived.add(isFull ? ANYTHING : name);
    this.#settleSoon();
  }

  /** The kept file of a NAR was found lost: looks soon at the pins that reach it. */
  lost(narName: NarName): void {
    this.#lost.add(this.#lost.size >= LOST_MAX ? ANYTHING : narName);
    this.#settleSoon();
  }

  /** Somebody has counted: looks now at the pins that lack a path, and were complete. */
  counted(
    closures: readonly Pick<PinnedClosure, "root" | "missing" | "look">[],
  ): void {
    const nowMs = clock.nowMs();
    for (const { root, missing, look } of closures) {
      if (missing === 0 || look?.missing !== 0) continue;
      const failedAtMs = this.#failed.get(root) ?? -Infinity;
      const beforeMs = this.#contradicted.get(root) ?? -Infinity;
      if (nowMs - failedAtMs < AGAIN_MS || nowMs - beforeMs < TICK_MS) continue;
      this.#contradicted.set(root, nowMs);
      this.want(root);
    }
  }

  /** Looks at the pins that are due. A second call joins. Never rejects. */
  run(): Promise<void> {
    return this.#running ??= this.#run()
      .catch((error) => {
        if (this.#stopping.signal.aborted) return;
        this.#deps.log.debug("pins not looked at", { error: messageOf(error) });
      })
      .finally(() => this.#running = undefined);
  }

  /**
   * Looks at every pin now, and reads the kept files. Ending the iteration ends the look. Throws
   * "busy" while another one runs.
   */
  verify(): AsyncIterable<VerifyEvent> {
    if (this.#verifying !== undefined) {
      throw new Failure("busy", "Cannot verify pins: another verification runs");
    }
    const over = Promise.withResolvers<void>();
    this.#verifying = over.promise;
    return this.#verify(() => over.resolve());
  }

  /** Judges the last looks again. Call it after each pin and unpin. Never rejects. */
  async judge(): Promise<void> {
    try {
      await this.#judge();
    } catch (error) {
      this.#deps.log.debug("pins not looked at", { error: messageOf(error) });
    }
  }

  /** Ends a look. What it fetches goes on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer.cancel();
    this.#judging.cancel();
    this.#settling?.cancel();
    this.#stopping.abort(new Error("larder stops"));
    await this.#running;
    await this.#verifying;
  }

  async *#verify(over: () => void): AsyncGenerator<VerifyEvent, void> {
    const ending = new AbortController();
    using either = new EitherSignal(ending.signal, this.#stopping.signal);
    const looking = lookingOf(either.signal, true);
    const { progress, damaged } = looking;
    this.#looking++;
    try {
      const pins = await this.#deps.metadata.pins();
      let complete = 0;
      for (const [pinsDone, pin] of pins.entries()) {
        const look = this.#look(pin, looking, "all");
        look.catch(() => undefined);
        for (;;) {
          const found = await clock.within(look, PROGRESS_EVERY_MS);
          if (found !== undefined) {
            if (found.missing === 0) complete++;
            yield { event: "pin", ...await this.#shown(pin, found) };
            break;
          }
          yield { event: "progress", pinsDone, pinsAll: pins.length, ...progress };
        }
      }
      await this.#judge();
      const counts = { pins: pins.length, complete, damaged: damaged.size };
      yield { event: "done", ...counts, ...progress };
    } catch (error) {
      if (!looking.signal.aborted) {
        this.#deps.log.event("pins-not-verified", { error: messageOf(error) });
      }
      throw error;
    } finally {
      ending.abort(new Error("nobody waits"));
      this.#verifying = undefined;
      this.#ended();
      over();
    }
  }

  async #run(): Promise<void> {
    this.#isRefused = false;
    this.#match();
    do {
      const pins = await this.#judge();
      const roots = new Set(pins.map(({ storePathHash }) => storePathHash));
      const short = new Set(pins.filter(isIncomplete).map(({ storePathHash }) => storePathHash));
      for (const root of this.#wanted) if (!roots.has(root)) this.#wanted.delete(root);
      for (const known of [this.#again, this.#awaited]) {
        for (const root of known.keys()) if (!short.has(root)) known.delete(root);
      }
      for (const root of this.#doubted.keys()) if (!roots.has(root)) this.#doubted.delete(root);
      await this.#doubt(pins);
      const counted = await this.#counted(pins);
      const due = this.#due(pins, counted);
      if (due.length === 0) return;
      if (!await this.#lookAll(counted)) return this.#refused(due);
      await this.#judge();
    } while (this.#wanted.size > 0);
  }

  /** Judges by the looks of all members, again and again, in a tenth of the time at most. */
  async #judgeOften(): Promise<void> {
    const startedAtMs = clock.nowMs();
    await this.judge();
    if (this.#stopping.signal.aborted) return;
    const pauseMs = Math.max(JUDGE_EVERY_MS, (clock.nowMs() - startedAtMs) * SETTLE_FACTOR);
    this.#judging = clock.after(pauseMs, () => void this.#judgeOften(), false);
  }

  /** The pins that it judged by. */
  async #judge(): Promise<readonly PinRoot[]> {
    const read = ++this.#judged.reads;
    const pins = await this.#deps.metadata.pins();
    await this.#deps.counts.readLost();
    // A later read may have answered before.
    if (read > this.#judged.last) {
      this.#judged.last = read;
      await this.#problem.judge(pins);
    }
    return pins;
  }

  /** Another member looks, perhaps not at what has come or was found lost since it began. */
  #refused(due: Due): void {
    const urgent = [this.#wanted, this.#again, this.#doubted];
    this.#isRefused = due.some(({ storePathHash }) => urgent.some((one) => one.has(storePathHash)));
    if (this.#isRefused) this.#settleSoon();
  }

  #settleSoon(): void {
    if (this.#stopping.signal.aborted) return;
    this.#settling ??= clock.after(Math.max(SETTLE_MS, this.#pauseMs), () => {
      this.#settling = undefined;
      this.#match();
      if (!this.#isRefused && this.#again.size === 0 && this.#lost.size === 0) return;
      if (this.#running === undefined && this.#pauseMs <= 0) void this.run();
      else this.#settleSoon();
    }, false);
  }

  /** What is left of the pause behind the last look at missing paths. */
  get #pauseMs(): number {
    return this.#settledAtMs + this.#settleMs * SETTLE_FACTOR - clock.nowMs();
  }

  /** Finds the pins that lacked what has come. */
  #match(): void {
    const arrived = [...this.#arrived];
    const isAny = this.#arrived.has(ANYTHING);
    for (const [root, { names }] of this.#awaited) {
      if (isAny || arrived.some((name) => names.has(name))) this.#again.add(root);
    }
    // A look that runs may have taken it for missing a moment ago, and says so at its end.
    if (this.#looking === 0) this.#arrived.clear();
  }

  /** Notes for each pin which paths were found lost, unless its last look says so. */
  async #doubt(pins: readonly PinRoot[]): Promise<void> {
    const nars = [...this.#lost];
    if (nars.length === 0) return;
    const { metadata } = this.#deps;
    const paths: string[] = [];
    for (const nar of nars) {
      paths.push(...nar === ANYTHING ? [nar] : await metadata.narinfosOf(nar as NarName));
    }
    for (const nar of nars) this.#lost.delete(nar);
    for (const { storePathHash: root, look } of pins) {
      const { lost = [] } = look ?? {};
      const known = new Set<string>(lost);
      // A disk is away, and the pin says so.
      if (lost.length >= LOST_MAX || paths.every((path) => known.has(path))) continue;
      const doubted = new Set([...this.#doubted.get(root) ?? [], ...paths]);
      this.#doubted.set(root, doubted.size > LOST_MAX ? new Set([ANYTHING]) : doubted);
    }
  }

  #ended(): void {
    this.#looking--;
    if (this.#arrived.size > 0) this.#settleSoon();
  }

  /** False while another member looks. */
  async #lookAll(counted: MissingCounts): Promise<boolean> {
    const { metadata, leases, log } = this.#deps;
    await using lease = await leases.pinLook();
    if (lease.kind !== "ours") return false;
    // Another member may have looked at them before this one had the lease.
    const due = this.#due(await metadata.pins(), counted);
    const looking = lookingOf(this.#stopping.signal, false);
    let settleMs = 0;
    this.#looking++;
    try {
      for (const { storePathHash, scope } of due) {
        looking.signal.throwIfAborted();
        const startedAtMs = clock.nowMs() - looking.fetchMs;
        const doubted = this.#doubted.get(storePathHash);
        this.#wanted.delete(storePathHash);
        this.#again.delete(storePathHash);
        const pin = await metadata.findPin(storePathHash);
        if (pin === undefined) continue;
        try {
          await this.#look(pin, looking, scope);
          this.#failed.delete(storePathHash);
          if (doubted === this.#doubted.get(storePathHash)) this.#doubted.delete(storePathHash);
        } catch (error) {
          looking.signal.throwIfAborted();
          // For example, the storage does not answer, or the closure is too large.
          this.#failed.set(storePathHash, clock.nowMs());
          log.debug("pin not looked at", { hash: storePathHash, error: messageOf(error) });
        }
        if (scope === "missing") settleMs += clock.nowMs() - looking.fetchMs - startedAtMs;
      }
    } finally {
      if (settleMs > 0) [this.#settleMs, this.#settledAtMs] = [settleMs, clock.nowMs()];
      this.#ended();
    }
    return true;
  }

  #due(
    pins: readonly PinRoot[],
    counted: MissingCounts,
  ): Due {
    return pins.flatMap((pin) => {
      const { storePathHash } = pin;
      const scope = this.#scopeDue(pin, counted.get(storePathHash));
      return scope === undefined ? [] : [{ storePathHash, scope }];
    });
  }

  /** "all" where the last look is too old, or other paths are missing by the rows. */
  #scopeDue(
    { storePathHash, keepComplete, look }: PinRoot,
    missing: number | undefined,
  ): Scope | undefined {
    const nowMs = this.#deps.nowMs();
    if (this.#wanted.has(storePathHash)) return "all";
    const failedAtMs = this.#failed.get(storePathHash) ?? -Infinity;
    if (clock.nowMs() - failedAtMs < AGAIN_MS) return undefined;
    if (look === undefined || look.atMs < lastNightMs(nowMs)) return "all";
    if (missing !== undefined && missing !== look.uncounted) return "all";
    if (this.#doubted.has(storePathHash)) return "missing";
    if (look.missing === 0) return undefined;
    if (keepComplete === true && nowMs - look.atMs >= AGAIN_MS) return "all";
    // This process does not know what was missing where another one has looked.
    const isKnown = this.#awaited.get(storePathHash)?.atMs === look.atMs;
    return !isKnown || this.#again.has(storePathHash) ? "missing" : undefined;
  }

  /** The missing paths of each closure by the rows, every ten minutes: a Worker counts them. */
  async #counted(pins: readonly PinRoot[]): Promise<MissingCounts> {
    const nowMs = this.#deps.nowMs();
    if (pins.length === 0 || nowMs < this.#countAtMs + AGAIN_MS) return new Map();
    this.#countAtMs = nowMs;
    try {
      const waiter = { client: REQUEST_ID, signal: this.#stopping.signal };
      const closures = await this.#deps.counts.closures(waiter);
      return new Map(closures.map(({ root, missing, lost = 0 }) => [root, missing - lost]));
    } catch {
      return new Map();
    }
  }

  async #look(pin: PinRoot, looking: Looking, scope: Scope): Promise<PinLook> {
    const { metadata, closures, nowMs, looked } = this.#deps;
    const { storePathHash: root, keepComplete } = pin;
    let { look: before } = pin;
    const { lost: lostBefore = [] } = before ?? {};
    const doubted = this.#doubted.get(root) ?? new Set();
    const isAny = doubted.has(ANYTHING);
    const suspects = scope === "missing" && !isAny && lostBefore.length < LOST_MAX &&
      new Set([...lostBefore, ...doubted]);
    for (let round = 0;; round++) {
      const paths = await closures.paths(root, looking.signal);
      const isHere = await eachOf(
        paths,
        looking,
        ({ storePathHash, isKept }) =>
          suspects && !suspects.has(storePathHash)
            ? Promise.resolve(isKept)
            : this.#isHere(storePathHash, looking),
      );
      const missing = paths.filter((_, at) => !isHere[at]);
      if (scope === "all" && missing.length > 0 && keepComplete && round < ROUNDS_MAX) {
        if (await this.#fetchAll(missing, looking)) continue;
      }
      const atMs = nowMs();
      const completeAtMs = missing.length === 0 ? atMs : before?.completeAtMs;
      const lost = missing.filter(({ isKept }) => isKept).slice(0, LOST_MAX);
      const found = await this.#whereabouts(missing, looking, scope);
      const isAsked = scope === "all" || (found.unasked ?? 0) <= (before?.unasked ?? 0);
      const look: PinLook = {
        ...{ atMs, paths: paths.length, missing: missing.length },
        ...found,
        uncounted: isAsked ? paths.filter(({ isKept }) => !isKept).length : UNLIKE_ANY,
        ...lost.length === 0 ? {} : { lost: lost.map(({ storePathHash }) => storePathHash) },
        ...completeAtMs === undefined ? {} : { completeAtMs },
      };
      if (scope === "missing" && before !== undefined && isAlike(look, before)) {
        await this.#await(root, before, missing, looking);
        return before;
      }
      await metadata.notePin(root, { look });
      looked();
      await this.#await(root, look, missing, looking);
      const isNew = ({ storePathHash }: ClosurePath) => isAny || doubted.has(storePathHash);
      const toFetch = scope === "missing" && keepComplete ? missing.filter(isNew) : [];
      if (toFetch.length === 0 || round > 0) return look;
      // A fetch takes its time: the loss is a problem already.
      await this.judge();
      if (!await this.#fetchAll(toFetch, looking)) return look;
      before = look;
    }
  }

  /** False where nothing new came. */
  async #fetchAll(missing: readonly ClosurePath[], looking: Looking): Promise<boolean> {
    const startedAtMs = clock.nowMs();
    const fetched = await eachOf(
      missing,
      looking,
      ({ storePathHash }) => this.#fetch(storePathHash, looking),
    );
    looking.fetchMs += clock.nowMs() - startedAtMs;
    return fetched.some(Boolean);
  }

  /** Notes what would end that the paths are missing. */
  async #await(
    root: StorePathHash,
    { atMs }: PinLook,
    missing: readonly ClosurePath[],
    looking: Looking,
  ): Promise<void> {
    this.#awaited.delete(root);
    if (missing.length === 0) return;
    const held = this.#awaited.values().reduce((sum, { names }) => sum + names.size, 0);
    const names = new Set<string>();
    // A NAR for each of them, too.
    const noted = held + 2 * missing.length > AWAITED_MAX ? [] : missing;
    await eachOf(noted, looking, async ({ storePathHash }) => {
      names.add(storePathHash);
      const row = await this.#deps.metadata.findNarinfo(storePathHash);
      if (row !== undefined) names.add(row.narName);
    });
    this.#awaited.set(root, { atMs, names });
  }

  /** Throws while the storage or the database cannot tell. */
  async #isHere(storePathHash: StorePathHash, looking: Looking): Promise<boolean> {
    const { metadata, kept } = this.#deps;
    const { signal, whole, progress } = looking;
    if (whole.has(storePathHash)) return true;
    progress.paths++;
    const row = await metadata.findNarinfo(storePathHash);
    const nar = row && await metadata.findNar(row.narName, { fresh: true });
    if (nar?.kept === undefined) return false;
    if (looking.reads) {
      const startedAtMs = clock.nowMs();
      const verified = await kept.verify(nar, REQUEST_ID, { signal });
      // Hashing takes half of this thread's time at most: the rest is for requests.
      await clock.pause(Math.min(clock.nowMs() - startedAtMs, PAUSE_MAX_MS), signal);
      progress.bytes += verified?.bytes ?? 0;
      if (verified?.content === "wrong") looking.damaged.add(storePathHash);
      if (verified?.content !== "right") return false;
    } else {
      const file = await kept.find(nar, REQUEST_ID, { signal, fresh: true });
      await file?.stored[Symbol.asyncDispose]();
      if (file === undefined) return false;
    }
    whole.add(storePathHash);
    return true;
  }

  /** False where nothing new came. */
  async #fetch(storePathHash: StorePathHash, looking: Looking): Promise<boolean> {
    const { metadata } = this.#deps;
    await this.#clientsFirst(looking.signal);
    const row = await metadata.findNarinfo(storePathHash);
    if (row === undefined) {
      const found = await this.#fetchNarinfo({ storePathHash, row }, looking);
      if (found !== undefined) await this.#download(found, looking);
      return found !== undefined;
    }
    if (await this.#download(row, looking)) return true;
    // Its upstream may have the path as another file by now.
    const isLost = (await metadata.findNar(row.narName))?.kept !== undefined;
    const found = await this.#fetchNarinfo({ storePathHash, row, isLost }, looking);
    return found !== undefined && await this.#download(found, looking);
  }

  async #fetchNarinfo(
    request: Omit<Parameters<NarinfoFetches["fetch"]>[0], "requestId">,
    { signal }: Looking,
  ): Promise<NarinfoRow | undefined> {
    const { narinfoFetches } = this.#deps;
    const fetched = await unlessAborted(
      narinfoFetches.fetch({ ...request, requestId: REQUEST_ID }),
      signal,
    );
    let narinfo: FetchedNarinfo = fetched.narinfo;
    if (narinfo.kind === "unknown" && narinfo.later) {
      narinfo = await unlessAborted(narinfo.later, signal);
    }
    return narinfo.kind === "found" ? narinfo.row : undefined;
  }

  /** As for a client: it evicts for the file if it must. */
  async #download({ narName }: NarinfoRow, { signal }: Looking): Promise<boolean> {
    const { metadata, downloads, log } = this.#deps;
    const nar = await metadata.findNar(narName, { fresh: true });
    if (nar === undefined) return false;
    try {
      const { download } = downloads.join(nar, REQUEST_ID);
      await unlessAborted(download.ended(), signal);
      return download.state.state === "kept";
    } catch (error) {
      signal.throwIfAborted();
      log.debug("pinned nar not fetched", { nar: narName, error: messageOf(error) });
      return false;
    }
  }

  async #whereabouts(
    missing: readonly ClosurePath[],
    looking: Looking,
    scope: Scope,
  ): Promise<Pick<PinLook, "upstream" | "nowhere" | "unasked" | "examples">> {
    const { signal } = looking;
    const asked = scope === "all" ? looking.asked : this.#asked;
    const untilMs = scope === "all" ? clock.nowMs() + ASKING_MAX_MS : -Infinity;
    const answers = await eachOf(missing, looking, async ({ storePathHash }) => {
      const known = asked.get(storePathHash);
      if (known !== undefined) return known;
      if (clock.nowMs() >= untilMs) return "unasked";
      const answer = await this.#ask(storePathHash, signal);
      asked.set(storePathHash, answer);
      this.#asked.set(storePathHash, answer);
      return answer;
    });
    const count = (where: Whereabouts) => answers.filter((answer) => answer === where).length;
    const unasked = count("unasked");
    const examples = missing.slice(0, EXAMPLES_MAX).map((path) => this.#nameOf(path));
    return {
      upstream: count("upstream"),
      nowhere: count("nowhere"),
      ...unasked > 0 ? { unasked } : {},
      examples: await Promise.all(examples),
    };
  }

  /** The name of a path whose narinfo may be missing, or its hash. */
  async #nameOf({ storePathHash, referrer }: ClosurePath): Promise<string> {
    const { metadata, nameOf } = this.#deps;
    const name = await nameOf(storePathHash);
    if (name !== undefined || referrer === undefined) return name ?? storePathHash;
    const text = (await metadata.findNarinfo(referrer))?.body ?? "";
    return new RegExp(`\\b${storePathHash}-(\\S+)`).exec(text)?.[1] ?? storePathHash;
  }

  /** Asks all upstreams for the narinfo, as a prefetch does: nobody waits, and nothing is stored. */
  async #ask(storePathHash: StorePathHash, signal: AbortSignal): Promise<Whereabouts> {
    const { pool } = this.#deps;
    await this.#clientsFirst(signal);
    const all = pool.statuses();
    const urls = all.filter(({ isUp }) => isUp).map(({ url }) => url);
    if (urls.length === 0) return all.length === 0 ? "nowhere" : "unknown";
    let answer = await unlessAborted(
      pool.prefetchNarinfo(storePathHash, { urls }, REQUEST_ID),
      signal,
    );
    if (answer.kind === "unknown" && answer.later) {
      answer = await unlessAborted(answer.later, signal);
    }
    if (answer.kind === "found") return "upstream";
    return answer.kind === "absent" && urls.length === all.length ? "nowhere" : "unknown";
  }

  /** Waits while clients' requests queue. */
  async #clientsFirst(signal: AbortSignal): Promise<void> {
    const { pool } = this.#deps;
    for (let leftMs = CLIENTS_FIRST_MAX_MS; leftMs > 0; leftMs -= CLIENTS_FIRST_MS) {
      if (!pool.statuses().some(({ url }) => pool.hasQueue(url))) return;
      await clock.pause(CLIENTS_FIRST_MS, signal);
    }
  }

  async #shown(pin: PinRoot, look: PinLook) {
    const name = await this.#deps.nameOf(pin.storePathHash) ?? null;
    return { root: pin.storePathHash, name, ...shownNotes({ ...pin, look }) };
  }
}

function isIncomplete({ look }: PinRoot): boolean {
  return look !== undefined && look.missing > 0;
}

function isAlike(look: PinLook, before: PinLook): boolean {
  return look.paths === before.paths && look.missing === before.missing &&
    look.lost?.length === before.lost?.length;
}

function lookingOf(signal: AbortSignal, reads: boolean): Looking {
  const progress = { paths: 0, bytes: 0 };
  return {
    signal,
    reads,
    whole: new Set(),
    asked: new Map(),
    damaged: new Set(),
    progress,
    fetchMs: 0,
  };
}

/** The last time that the nightly look was due. */
function lastNightMs(nowMs: number): number {
  const night = new Date(nowMs);
  night.setHours(NIGHT_HOUR, 0, 0, 0);
  if (night.getTime() > nowMs) night.setDate(night.getDate() - 1);
  return night.getTime();
}

/** The results in the order of the items, of which some are worked on at once. */
async function eachOf<Item, Result>(
  items: readonly Item[],
  { signal, reads }: Looking,
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const slice = clock.slice(signal);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const at = next++;
      results[at] = await work(items[at] as Item);
      signal.throwIfAborted();
      if (slice.isOver) await slice.yield();
    }
  };
  await Promise.all(Array.from({ length: reads ? 1 : AT_ONCE }, worker));
  return results;
}

const NAMES_MAX = 3;

interface PinProblemDeps {
  readonly nameOf: (storePathHash: StorePathHash) => Promise<string | undefined>;
  readonly log: Logger;
}

interface LookedAt extends PinRoot {
  readonly look: PinLook;
}

/** The problem of pins that were complete, or are to be kept so, and are not. */
class PinProblem {
  readonly #deps: PinProblemDeps;
  readonly #outage;
  #state = "";

  constructor(deps: PinProblemDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "pinned-closures-complete");
  }

  /** Begins, changes or ends the problem, by the last looks at all pins. */
  async judge(pins: readonly PinRoot[]): Promise<void> {
    const short = pins.filter(isShort);
    const state = short.map(({ storePathHash, look: { missing, upstream, nowhere } }) =>
      [storePathHash, missing, upstream, nowhere].join(" ")
    ).join();
    if (state === this.#state) return;
    this.#state = state;
    if (short.length === 0) return this.#outage.worked();
    const names = await Promise.all(
      short.slice(0, NAMES_MAX).map(async ({ storePathHash }) =>
        await this.#deps.nameOf(storePathHash) ?? storePathHash
      ),
    );
    // Judged anew meanwhile.
    if (state !== this.#state) return;
    const missing = short.reduce((sum, { look }) => sum + look.missing, 0);
    const [first] = short;
    const examples = first?.look.examples.slice(0, NAMES_MAX) ?? [];
    const facts = {
      name: listed(names, short.length, "pin"),
      missing,
      paths: listed(examples, missing, "path"),
      hint: first === undefined ? "" : hintFor(first),
    };
    this.#outage.failed("pinned-closure-incomplete", facts, state);
  }
}

function isShort(pin: PinRoot): pin is LookedAt {
  const { look, keepComplete } = pin;
  if (look === undefined || look.missing === 0) return false;
  return keepComplete === true || look.completeAtMs !== undefined;
}

function hintFor({ storePathHash, keepComplete, look }: LookedAt): string {
  const { missing, upstream, nowhere } = look;
  if (nowhere > 0) {
    return `no upstream has ${nowhere} of them: push them again with nix copy --to .../upload, or build them`;
  }
  if (upstream === 0) return "wait: larder asks its upstreams again; check them if it lasts";
  const where = upstream === missing ? "upstreams still have them" : `upstreams have ${upstream}`;
  return keepComplete
    ? `${where}, and larder tries again: raise --cache-max-size if there is no room for them`
    : `${where}: larder pin --keep-complete ${storePathHash} fetches them, and keeps them`;
}

/** Some of `count` names, and how many more there are. */
function listed(names: readonly string[], count: number, noun: string): string {
  const more = count - names.length;
  return more > 0 ? `${names.join(", ")} and ${counted(more, `more ${noun}`)}` : names.join(", ");
}

/** One pin, as a verification found it. */
type VerifiedPin =
  & { readonly event: "pin" }
  & Pick<PinnedClosure, "root" | "name" | "keepComplete" | "complete" | "look">;

interface VerifyProgress {
  readonly event: "progress";
  readonly pinsDone: number;
  readonly pinsAll: number;
  /** Paths looked at, and bytes of the files read. */
  readonly paths: number;
  readonly bytes: number;
}

interface VerifyDone {
  readonly event: "done";
  readonly pins: number;
  readonly complete: number;
  /** Paths whose file was damaged; it may have been fetched again since. */
  readonly damaged: number;
  readonly paths: number;
  readonly bytes: number;
}

/** What `POST /pins/verify` reports. */
type VerifyEvent = VerifyProgress | VerifiedPin | VerifyDone;
