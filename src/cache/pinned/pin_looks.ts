import { Failure, messageOf } from "../../base/failure.ts";
import { EitherSignal } from "../../base/either_signal.ts";
import { lruOf } from "../../base/lru.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import type { WorkLeases } from "../../locks/work_leases.ts";
import type {
  NarFinder,
  NarinfoFinder,
  NarinfoRow,
  PinFinder,
  PinRoot,
} from "../../metadata/metadata_store.ts";
import type { PinLook, PinNoter } from "../../metadata/pin_look.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { PinReads } from "../../pins/pin_reads.ts";
import { type ClosureLister, type ClosurePath, shownNotes } from "../../pins/pinned_closures.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { Downloads } from "../download/downloads.ts";
import type { KeptNars } from "../kept/kept_nars.ts";
import type { FetchedNarinfo } from "../narinfo/fetch_narinfo.ts";
import type { NarinfoFetches } from "../narinfo/narinfo_fetches.ts";
import { PinProblem } from "./pin_problem.ts";
import type { VerifyEvent } from "./verify_event.ts";

/** Between two looks for pins that are due. */
const TICK_MS = 60_000;

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

/** A fetch or a question waits so long while clients' requests queue. */
const CLIENTS_FIRST_MAX_MS = 60_000;
const CLIENTS_FIRST_MS = 100;

/** Between two files that are read. */
const PAUSE_MAX_MS = 1_000;

const PROGRESS_EVERY_MS = 1_000;

/** In the log, and where larder counts who waits for a count. */
const REQUEST_ID = "pins";

export interface PinLooksDeps {
  readonly metadata: PinFinder & PinNoter & NarinfoFinder & Pick<NarFinder, "findNar">;
  readonly closures: Pick<ClosureLister, "paths">;
  readonly counts: Pick<PinReads, "closures">;
  readonly kept: Pick<KeptNars, "find" | "verify">;
  readonly narinfoFetches: Pick<NarinfoFetches, "fetch">;
  readonly downloads: Pick<Downloads, "join">;
  readonly pool: Pick<UpstreamPool, "prefetchNarinfo" | "statuses" | "hasQueue">;
  /** `undefined` for a path that larder has not met. */
  readonly nameOf: (storePathHash: StorePathHash) => Promise<string | undefined>;
  readonly leases: Pick<WorkLeases, "pinLook">;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** The missing paths of closures by the rows, at their last count. */
type MissingCounts = ReadonlyMap<StorePathHash, number>;

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
}

/** Where a missing path still is: "unknown" while an upstream cannot tell. */
type Whereabouts = "upstream" | "nowhere" | "unknown" | "unasked";

/**
 * Looks at every path of each pinned closure once a night, and soon after a pin, or a change of
 * what its closure lacks. A path is here if its kept file is the verified one. Of the others larder
 * asks the upstreams. Where a pin says so, it fetches them first.
 *
 * One member looks at a time, and writes what it found into the pin's row. All members take the
 * problem from there.
 */
export class PinLooks implements AsyncDisposable {
  readonly #deps: PinLooksDeps;
  readonly #problem: PinProblem;
  readonly #timer;
  readonly #stopping = new AbortController();
  /** Pins whose turn is now. */
  readonly #wanted = new Set<StorePathHash>();
  /** When a look at a pin could not tell. */
  readonly #failed = lruOf<StorePathHash, number>({ countMax: FAILED_MAX });
  #running: Promise<void> | undefined;
  #verifying: Promise<unknown> | undefined;
  #countAtMs = -Infinity;

  constructor(deps: PinLooksDeps) {
    this.#deps = deps;
    this.#problem = new PinProblem(deps);
    this.#timer = clock.every(TICK_MS, () => void this.run(), false);
  }

  /** Looks at this pin soon. */
  want(root: StorePathHash): void {
    this.#wanted.add(root);
    void this.run();
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
      await this.#problem.judge(await this.#deps.metadata.pins());
    } catch (error) {
      this.#deps.log.debug("pins not looked at", { error: messageOf(error) });
    }
  }

  /** Ends a look. What it fetches goes on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer.cancel();
    this.#stopping.abort(new Error("larder stops"));
    await this.#running;
    await this.#verifying;
  }

  async *#verify(over: () => void): AsyncGenerator<VerifyEvent, void> {
    const ending = new AbortController();
    using either = new EitherSignal(ending.signal, this.#stopping.signal);
    const looking = lookingOf(either.signal, true);
    const { progress, damaged } = looking;
    try {
      const pins = await this.#deps.metadata.pins();
      let complete = 0;
      for (const [pinsDone, pin] of pins.entries()) {
        const look = this.#look(pin, looking);
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
      await this.#problem.judge(await this.#deps.metadata.pins());
      const counts = { pins: pins.length, complete, damaged: damaged.size };
      yield { event: "done", ...counts, ...progress };
    } catch (error) {
      if (!looking.signal.aborted) {
        this.#deps.log.warn("pins not verified", { error: messageOf(error) });
      }
      throw error;
    } finally {
      ending.abort(new Error("nobody waits"));
      this.#verifying = undefined;
      over();
    }
  }

  async #run(): Promise<void> {
    do {
      const pins = await this.#deps.metadata.pins();
      await this.#problem.judge(pins);
      for (const root of this.#wanted) {
        if (!pins.some(({ storePathHash }) => storePathHash === root)) this.#wanted.delete(root);
      }
      const counted = await this.#counted(pins);
      if (this.#due(pins, counted).length === 0 || !await this.#lookAll(counted)) return;
      await this.#problem.judge(await this.#deps.metadata.pins());
    } while (this.#wanted.size > 0);
  }

  /** False while another member looks. */
  async #lookAll(counted: MissingCounts): Promise<boolean> {
    const { metadata, leases, log } = this.#deps;
    await using lease = await leases.pinLook();
    if (lease.kind !== "ours") return false;
    // Another member may have looked at them before this one had the lease.
    const due = this.#due(await metadata.pins(), counted);
    const looking = lookingOf(this.#stopping.signal, false);
    for (const { storePathHash } of due) {
      looking.signal.throwIfAborted();
      this.#wanted.delete(storePathHash);
      const pin = await metadata.findPin(storePathHash);
      if (pin === undefined) continue;
      try {
        await this.#look(pin, looking);
        this.#failed.delete(storePathHash);
      } catch (error) {
        looking.signal.throwIfAborted();
        // For example, the storage does not answer, or the closure is too large.
        this.#failed.set(storePathHash, clock.nowMs());
        log.debug("pin not looked at", { hash: storePathHash, error: messageOf(error) });
      }
    }
    return true;
  }

  /** The pins whose look is too old, or of which other paths are missing now. */
  #due(pins: readonly PinRoot[], counted: MissingCounts): readonly PinRoot[] {
    const nowMs = this.#deps.nowMs();
    return pins.filter(({ storePathHash, keepComplete, look }) => {
      if (this.#wanted.has(storePathHash)) return true;
      const failedAtMs = this.#failed.get(storePathHash) ?? -Infinity;
      if (clock.nowMs() - failedAtMs < AGAIN_MS) return false;
      if (look === undefined) return true;
      if (look.atMs < lastNightMs(nowMs)) return true;
      const missing = counted.get(storePathHash);
      if (missing !== undefined && missing !== look.uncounted) return true;
      return keepComplete === true && look.missing > 0 && nowMs - look.atMs >= AGAIN_MS;
    });
  }

  /** The missing paths of each closure by the rows, every ten minutes: a Worker counts them. */
  async #counted(pins: readonly PinRoot[]): Promise<MissingCounts> {
    const nowMs = this.#deps.nowMs();
    if (pins.length === 0 || nowMs < this.#countAtMs + AGAIN_MS) return new Map();
    this.#countAtMs = nowMs;
    try {
      const waiter = { client: REQUEST_ID, signal: this.#stopping.signal };
      const closures = await this.#deps.counts.closures(waiter);
      return new Map(closures.map(({ root, missing }) => [root, missing]));
    } catch {
      return new Map();
    }
  }

  async #look(pin: PinRoot, looking: Looking): Promise<PinLook> {
    const { metadata, closures, nowMs } = this.#deps;
    const { storePathHash: root, keepComplete } = pin;
    for (let round = 0;; round++) {
      const paths = await closures.paths(root, looking.signal);
      const all = paths.map(({ storePathHash }) => storePathHash);
      const isHere = await eachOf(all, looking, (path) => this.#isHere(path, looking));
      const missing = paths.filter((_, at) => !isHere[at]);
      if (missing.length > 0 && keepComplete && round < ROUNDS_MAX) {
        const fetched = await eachOf(
          missing,
          looking,
          ({ storePathHash }) => this.#fetch(storePathHash, looking),
        );
        if (fetched.some(Boolean)) continue;
      }
      const atMs = nowMs();
      const completeAtMs = missing.length === 0 ? atMs : pin.look?.completeAtMs;
      const look: PinLook = {
        ...{ atMs, paths: all.length, missing: missing.length },
        ...await this.#whereabouts(missing, looking),
        uncounted: paths.filter(({ isKept }) => !isKept).length,
        ...completeAtMs === undefined ? {} : { completeAtMs },
      };
      await metadata.notePin(root, { look });
      return look;
    }
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
  ): Promise<Pick<PinLook, "upstream" | "nowhere" | "unasked" | "examples">> {
    const { asked, signal } = looking;
    const untilMs = clock.nowMs() + ASKING_MAX_MS;
    const answers = await eachOf(missing, looking, async ({ storePathHash }) => {
      const known = asked.get(storePathHash);
      if (known !== undefined) return known;
      if (clock.nowMs() >= untilMs) return "unasked";
      const answer = await this.#ask(storePathHash, signal);
      asked.set(storePathHash, answer);
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

function lookingOf(signal: AbortSignal, reads: boolean): Looking {
  const progress = { paths: 0, bytes: 0 };
  return { signal, reads, whole: new Set(), asked: new Map(), damaged: new Set(), progress };
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
