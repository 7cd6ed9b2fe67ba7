import { lruOf } from "../../base/lru.ts";
import type { ChangeWriter, NarFinder, NarRow, NarSource } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Offer } from "../../upstream/narinfo_query.ts";
import type { AskOptions, UpstreamPool } from "../../upstream/upstream_pool.ts";
import { isSameFile, leadsToFile, sourceOf } from "../nar/nar_naming.ts";

/** Sources, best first. */
export type NarCandidates = AsyncGenerator<NarSource, void>;

/** Stands for the URL of this member, where its own copy is a source of a NAR. */
export const OWN_COPY_URL = "larder://this-member";

/** The members that download NARs now. */
export interface MemberNarSources {
  /** The one that downloads this file, as a source of it. Never rejects. */
  sourceOf(nar: NarName): Promise<NarSource | undefined>;
  /** Call it when `holder` does not send the file, or stopped. Never rejects. */
  stopped(nar: NarName, holder: NarSource): Promise<void>;
  /** The sources behind the holder, and in front of upstreams. Default: none. */
  after?(nar: NarName): AsyncIterable<NarSource>;
}

export interface NarCandidatesDeps {
  readonly metadata: NarFinder & ChangeWriter;
  readonly pool: Pick<UpstreamPool, "narinfo" | "order" | "waitOf" | "probeIfDown">;
  readonly demotions: Demotions;
  /** Finds the name of a NAR's store path, for the log lines that follow. Never rejects. */
  readonly nameOf?: (narName: NarName) => string | Promise<string | undefined>;
  /** Default: there are no other members. */
  readonly members?: MemberNarSources;
}

/**
 * The sources of a NAR file, best first. A member that downloads it comes before upstreams. Known
 * ones come in order of preference, then upstreams that turn out to have the same file, then
 * demoted ones. It leaves out silent upstreams. Take the next source only when needed: finding one
 * costs requests.
 */
export async function* narCandidates(
  { metadata, pool, demotions, nameOf, members }: NarCandidatesDeps,
  nar: NarRow,
  requestId: string,
): NarCandidates {
  await nameOf?.(nar.name);
  const holder = await members?.sourceOf(nar.name);
  if (holder !== undefined) {
    yield holder;
    yield* members?.after?.(nar.name) ?? [];
  }
  const order = pool.order("nar");
  const known = (await metadata.sourcesOf(nar.name))
    .filter(({ upstream }) => order.includes(upstream))
    .toSorted((a, b) => order.indexOf(a.upstream) - order.indexOf(b.upstream));
  const isDemoted = ({ upstream }: NarSource) => demotions.get(nar.name, upstream) !== undefined;

  const answers = ({ upstream }: NarSource) => pool.waitOf(upstream) !== "none";

  if (!known.some(answers)) await pool.probeIfDown(known.map(({ upstream }) => upstream), "nar");
  yield* known.filter((source) => answers(source) && !isDemoted(source));
  const except = new Set(known.map(({ upstream }) => upstream));
  for (const { length } = order; except.size < length;) {
    const offers = await findMore({ metadata, pool, demotions }, nar, { requestId, except });
    // The pool waits for the best offer alone: the next query finds those behind it.
    for (const { upstream } of offers) except.add(upstream);
    if (offers.length === 0) break;
    yield* offers.filter(({ narinfo }) => leadsToFile(narinfo, nar)).map(sourceOf);
  }
  yield* known.filter((source) => answers(source) && isDemoted(source));
}

/** Offers for the NAR's path; those of the same file become sources. */
async function findMore(
  { metadata, pool }: NarCandidatesDeps,
  nar: NarRow,
  options: AskOptions,
): Promise<readonly Offer[]> {
  const [storePathHash] = await metadata.narinfosOf(nar.name);
  if (storePathHash === undefined) return [];
  const answer = await pool.narinfo(storePathHash, options);
  if (answer.kind !== "found") return [];
  const offers = [answer.best, ...answer.others];
  await metadata.apply(
    offers.filter(({ narinfo }) => isSameFile(narinfo, nar)).map((offer) => (
      { kind: "put-source" as const, narName: nar.name, source: sourceOf(offer) }
    )),
  );
  return offers;
}

/** An upstream that sends fewer bytes in a second makes clients wait. */
export const SLOW_BYTES_PER_SECOND = 1024 * 1024;

const TICK_MS = 1_000;

/** A second in which less of it went to bodies says nothing: its NARs were over soon. */
const BUSY_MIN_MS = TICK_MS / 2;

/** Slow seconds after which an upstream is slow, each within `OVER_AFTER_MS` of the one before. */
const SLOW_TICKS = 3;

/** An upstream is slow no longer so long after its last slow second. */
const OVER_AFTER_MS = 5_000;

/** Fewer bytes say more about latency than about the rate. */
const BYTES_MIN = 256 * 1024;

/** How fast the bytes of a NAR file come from an upstream. */
interface NarPace {
  readonly nar: NarName;
  readonly upstream: string;
  /** Of the last seconds, as the list of downloads has it; of all its bytes at the end. */
  readonly bytesPerSecond: number;
  /** Since its first byte. */
  readonly ms: number;
}

interface NarPacesDeps {
  /** Called for each NAR file of some size: at its end, and each second of a slow upstream. */
  readonly noted: (pace: NarPace) => void;
  /** Called each second in which an upstream is slow: the longest wait. */
  readonly slow: (pace: NarPace) => void;
  /** Called once when no client waits for a slow upstream any more. */
  readonly over: (upstream: string) => void;
}

/** What the pace of a file is read from. */
export interface PacedNar {
  readonly nar: NarName;
  readonly upstream: string;
  readonly target: {
    readonly received: number;
    readonly isWanted: boolean;
    readonly bytesPerSecond: number | undefined;
  };
}

/**
 * Finds the upstreams whose NARs are so slow that clients wait. Many files share a line, so the
 * bytes of all are judged together, second by second.
 */
export class NarPaces implements Disposable {
  readonly #deps: NarPacesDeps;
  readonly #upstreams = new Map<string, UpstreamPace>();

  constructor(deps: NarPacesDeps) {
    this.#deps = deps;
  }

  /** The first bytes of a file come from the upstream. Dispose of it when they have ended. */
  begin(given: PacedNar): Disposable {
    let pace = this.#upstreams.get(given.upstream);
    if (pace === undefined) {
      pace = new UpstreamPace(given.upstream, this.#deps);
      this.#upstreams.set(given.upstream, pace);
    }
    return pace.begin(given);
  }

  [Symbol.dispose](): void {
    for (const pace of this.#upstreams.values()) pace[Symbol.dispose]();
  }
}

interface PacedFile extends PacedNar {
  readonly startedAtMs: number;
  readonly startedAt: number;
  /** The bytes of it that are counted. */
  counted: number;
}

/** The files that come from one upstream. */
class UpstreamPace implements Disposable {
  readonly #upstream: string;
  readonly #deps: NarPacesDeps;
  readonly #files = new Set<PacedFile>();
  /** Of this second: its bytes, the time in which files came, and the longest wait that ended. */
  #bytes = 0;
  #busyMs = 0;
  #ended: NarPace | undefined;
  #busySinceMs = 0;
  #slowTicks = 0;
  #tick: Timer | undefined;
  #over: Timer | undefined;

  constructor(upstream: string, deps: NarPacesDeps) {
    this.#upstream = upstream;
    this.#deps = deps;
  }

  begin(given: PacedNar): Disposable {
    const startedAtMs = clock.nowMs();
    const { received } = given.target;
    const file = { ...given, startedAtMs, startedAt: received, counted: received };
    if (this.#files.size === 0) this.#busySinceMs = startedAtMs;
    this.#files.add(file);
    this.#tick ??= clock.after(TICK_MS, () => this.#judge(), false);
    return { [Symbol.dispose]: () => this.#end(file) };
  }

  [Symbol.dispose](): void {
    this.#tick?.cancel();
    this.#over?.cancel();
  }

  #end(file: PacedFile): void {
    if (!this.#files.delete(file)) return;
    this.#count(file);
    if (this.#files.size === 0) this.#busyMs += clock.nowMs() - this.#busySinceMs;
    const pace = paceOf(file);
    if (file.target.isWanted && pace.ms > (this.#ended?.ms ?? 0)) this.#ended = pace;
    if (file.counted - file.startedAt >= BYTES_MIN) this.#deps.noted(pace);
  }

  #count(file: PacedFile): void {
    const { received } = file.target;
    this.#bytes += Math.max(0, received - file.counted);
    file.counted = received;
  }

  /** Judges the second that is over. */
  #judge(): void {
    this.#tick = undefined;
    const nowMs = clock.nowMs();
    for (const file of this.#files) this.#count(file);
    const isBusy = this.#files.size > 0;
    const busyMs = this.#busyMs + (isBusy ? nowMs - this.#busySinceMs : 0);
    const waiting = [...this.#files].filter(({ target }) => target.isWanted).map((file) => {
      const pace = paceOf(file);
      return { ...pace, bytesPerSecond: file.target.bytesPerSecond ?? pace.bytesPerSecond };
    });
    const waits = this.#ended === undefined ? waiting : [...waiting, this.#ended];
    const [longest] = waits.toSorted((a, b) => b.ms - a.ms);
    const rate = this.#bytes * 1_000 / Math.max(1, busyMs);
    // Without a byte it stands still, and the idle timeout judges that.
    const isSlow = busyMs >= BUSY_MIN_MS && this.#bytes > 0 && rate < SLOW_BYTES_PER_SECOND;
    const isWorthATick = isBusy || this.#ended !== undefined;
    this.#bytes = this.#busyMs = 0;
    this.#ended = undefined;
    this.#busySinceMs = nowMs;
    if (isSlow && longest !== undefined) this.#isSlow(longest, waiting);
    if (isWorthATick) this.#tick ??= clock.after(TICK_MS, () => this.#judge(), false);
  }

  #isSlow(longest: NarPace, waiting: readonly NarPace[]): void {
    this.#over?.cancel();
    this.#over = clock.after(OVER_AFTER_MS, () => this.#isOver(), false);
    this.#slowTicks++;
    if (this.#slowTicks < SLOW_TICKS) return;
    for (const pace of waiting) this.#deps.noted(pace);
    this.#deps.slow(longest);
  }

  #isOver(): void {
    const wasSlow = this.#slowTicks >= SLOW_TICKS;
    this.#slowTicks = 0;
    if (wasSlow) this.#deps.over(this.#upstream);
  }
}

function paceOf({ nar, upstream, target, startedAtMs, startedAt }: PacedFile): NarPace {
  const ms = clock.nowMs() - startedAtMs;
  const bytes = Math.max(0, target.received - startedAt);
  return { nar, upstream, bytesPerSecond: Math.round(bytes * 1_000 / Math.max(1, ms)), ms };
}

/** Time in which a demoted upstream gets requests last. */
const DEMOTED_FOR_MS = 60 * 60 * 1_000;
const ENTRIES_MAX = 10_000;

/**
 * The reason for a demotion. "bad": the upstream sent a wrong file. "missing": it did not send the
 * announced file, because it compresses anew or breaks off each time, for example.
 */
type Demotion = "bad" | "missing";

/** NARs of its own narinfos that an upstream loses in a row before it comes last for all. */
const LOST_MAX = 3;

/** A NAR, and the path whose narinfo leads to it. */
interface NarOfPath {
  readonly narName: NarName;
  readonly storePathHash: StorePathHash;
}

const LIMITS = { countMax: ENTRIES_MAX, ttlMs: DEMOTED_FOR_MS };

/** The upstreams that failed to send a NAR file: later requests ask the others first. */
export class Demotions {
  readonly #entries = lruOf<string, Demotion>(LIMITS);
  /** Demotions by store path, too: an upstream may announce another file each time. */
  readonly #ofPaths = lruOf<StorePathHash, Map<string, Demotion>>(LIMITS);
  /** NARs that an upstream lacked since it sent one, by its URL. */
  readonly #lost = lruOf<string, Set<NarName>>(LIMITS);
  /** Paths that no other upstream has: those that come last are all that there is. */
  readonly #alone = lruOf<StorePathHash, true>(LIMITS);
  #lastAtMs = -Infinity;

  add(narName: NarName, upstream: string, how: Demotion): void {
    this.#entries.set(`${narName} ${upstream}`, how);
    this.#lastAtMs = clock.nowMs();
  }

  /** The upstream lacks a NAR of its own narinfo. */
  lost(narName: NarName, upstream: string): void {
    this.add(narName, upstream, "missing");
    const lost = this.#lost.get(upstream) ?? new Set();
    if (lost.size < LOST_MAX) lost.add(narName);
    this.#lost.set(upstream, lost);
  }

  /** The upstream sends a NAR: it does not lack all of them. */
  sent(upstream: string): void {
    this.#lost.delete(upstream);
  }

  get(narName: NarName, upstream: string): Demotion | undefined {
    return this.none ? undefined : this.#entries.get(`${narName} ${upstream}`);
  }

  /**
   * False for a source that failed to send the NAR, and for an upstream that lost several while
   * another may have the path.
   */
  maySend({ narName, storePathHash }: NarOfPath, upstream: string): boolean {
    if (this.none) return true;
    if (this.get(narName, upstream) !== undefined) return false;
    return !this.#hasLostSeveral(upstream) || this.#alone.has(storePathHash);
  }

  /** Call it after the upstream's narinfo was fetched again. */
  forgive(narName: NarName, upstream: string): void {
    this.#entries.delete(`${narName} ${upstream}`);
  }

  /** The upstream's narinfo of this path led to the file that it failed to send. */
  addPath(storePathHash: StorePathHash, upstream: string, how: Demotion): void {
    const ofPath = this.#ofPaths.get(storePathHash) ?? new Map<string, Demotion>();
    this.#ofPaths.set(storePathHash, ofPath.set(upstream, how));
  }

  /** The upstreams to ask last for the narinfo of this path. */
  ofPath(storePathHash: StorePathHash): ReadonlySet<string> {
    if (this.none) return new Set();
    const losers = [...this.#lost.keys()].filter((upstream) => this.#hasLostSeveral(upstream));
    return new Set([...this.#ofPaths.get(storePathHash)?.keys() ?? [], ...losers]);
  }

  /** No other upstream has the path: drops the "missing" demotions, as the file may be back. */
  forgivePath(storePathHash: StorePathHash): void {
    const ofPath = this.#ofPaths.get(storePathHash);
    for (const [upstream, how] of ofPath ?? []) if (how === "missing") ofPath?.delete(upstream);
    this.#alone.set(storePathHash, true);
  }

  /** True without any demotion, the usual case. */
  get none(): boolean {
    return clock.nowMs() - this.#lastAtMs > DEMOTED_FOR_MS;
  }

  #hasLostSeveral(upstream: string): boolean {
    return (this.#lost.get(upstream)?.size ?? 0) >= LOST_MAX;
  }
}
