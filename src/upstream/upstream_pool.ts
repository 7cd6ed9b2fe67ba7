import type { StorePathHash } from "../nix/store_path.ts";
import { NarinfoQuery, type PoolAnswer, preference } from "./narinfo_query.ts";
import { PooledUpstream, type RivalWait } from "./pooled_upstream.ts";
import {
  type NarinfoReading,
  type NoAnswerReason,
  noAnswerReasonOf,
  type QueuedNarinfoSource,
  type RequestKind,
  type RequestRank,
  type UpstreamReading,
} from "./upstream.ts";
import type { UpstreamWait } from "./upstream_health.ts";
import type { AskedUpstreams } from "./asked_upstreams.ts";

/** An upstream's state, for people. */
export interface UpstreamStatus {
  readonly url: string;
  /** Up for narinfos. */
  readonly isUp: boolean;
  /** Up for NARs. */
  readonly sendsNars: boolean;
  /** `undefined` until it is known. */
  readonly priority: number | undefined;
}

/** Result of the first request to an upstream. */
export interface StartProbe {
  readonly url: string;
  /** Why it is of no use now; `undefined` if it answered as a binary cache. */
  readonly error: unknown;
}

/** A narinfo request to the upstreams. */
interface PoolRequest {
  readonly storePathHash: StorePathHash;
  readonly requestId: string;
  readonly rank: RequestRank;
}

export interface UpstreamPoolDeps {
  /** Upstreams in the order in which the operator gave them. */
  readonly upstreams: readonly QueuedNarinfoSource[];
  /** Notes who is asked for which narinfo. Default: nobody does. */
  readonly waits?: Pick<AskedUpstreams, "begin">;
  /** Called with every answer, for logs and counts. */
  readonly observe: (
    upstream: string,
    reading: NarinfoReading,
    request: PoolRequest,
  ) => void;
  /**
   * Called with the sender and each better upstream, and how long a client waited for it. True
   * where that makes it slow.
   */
  readonly waited: (upstream: string, storePathHash: StorePathHash, wait: RivalWait) => boolean;
  /** Called with an upstream's answer about a path with which it failed before. */
  readonly askedAgain: (upstream: string, reading: NarinfoReading) => void;
  /** Called with an upstream that was slow, and is not any more. */
  readonly quick: (upstream: string) => void;
  /** Called with the result of each NAR request. */
  readonly observeNar: (upstream: string, reading: UpstreamReading) => void;
  /** Called with each upstream that a client's request leaves out because it is down. */
  readonly skipped: (upstream: string, storePathHash: StorePathHash) => void;
  /** Called after each change of an upstream's known facts. See `HealthWatch`. */
  readonly noted: (upstream: string, isUp: boolean, error: unknown) => void;
  /** Called when an upstream goes down, and when it is up again. See `HealthWatch`. */
  readonly changed: (upstream: string, isDown: boolean, kind: RequestKind) => void;
}

export interface AskOptions {
  /** Id of the client's request; for the log. */
  readonly requestId: string;
  /** URLs of upstreams to leave out. */
  readonly except?: ReadonlySet<string> | undefined;
}

/** The upstreams that a prefetch may use. */
export interface SpareUpstreams {
  /** Best first; none of the upstreams left out is preferred to any of them. */
  readonly urls: readonly string[];
  /** True where a client's request would go to the same upstreams. */
  readonly isComplete: boolean;
}

/** Queries in flight beyond this end when their client has its answer. */
const LATE_QUERIES_MAX = 200;

/** All upstreams. Requests go to them side by side. */
export class UpstreamPool implements Disposable {
  readonly #deps: UpstreamPoolDeps;
  readonly #upstreams: readonly PooledUpstream[];
  readonly #queries = new Set<NarinfoQuery>();
  #isOver = false;

  constructor(deps: UpstreamPoolDeps) {
    this.#deps = deps;
    this.#upstreams = deps.upstreams.map((source) =>
      new PooledUpstream(source, {
        changed: (isDown, kind) => deps.changed(source.url, isDown, kind),
        noted: (isUp, error) => deps.noted(source.url, isUp, error),
        askedAgain: (reading) => deps.askedAgain(source.url, reading),
        quick: () => deps.quick(source.url),
      })
    );
  }

  /** True without any upstream. */
  get isEmpty(): boolean {
    return this.#upstreams.length === 0;
  }

  /**
   * Asks every upstream that is up for a narinfo. While all are down, it probes them first. The
   * best valid offer wins, by priority, then by order, as soon as no answer to come can beat it.
   */
  narinfo(storePathHash: StorePathHash, options: AskOptions): Promise<PoolAnswer> {
    const upstreams = this.#upstreams.filter(({ source }) => !options.except?.has(source.url));
    const { requestId } = options;
    const ask = () => {
      const up = upstreams.filter((upstream) => {
        const isDown = upstream.isDown("narinfo");
        if (isDown) this.#deps.skipped(upstream.source.url, storePathHash);
        return !isDown;
      });
      return this.#ask(storePathHash, up, { requestId, rank: "client" });
    };
    const isUp = upstreams.some((upstream) => !upstream.isDown("narinfo"));
    return isUp ? ask() : probed(upstreams, "narinfo").then(ask);
  }

  /**
   * Requests a narinfo from `spare` upstreams, for a prefetch. A failure does not count for their
   * health.
   */
  prefetchNarinfo(
    storePathHash: StorePathHash,
    { urls }: Pick<SpareUpstreams, "urls">,
    requestId: string,
  ): Promise<PoolAnswer> {
    const upstreams = this.#upstreams.filter(({ source }) => urls.includes(source.url));
    return this.#ask(storePathHash, upstreams, { requestId, rank: "prefetch" });
  }

  /**
   * The upstreams that have capacity to spare, up to the first in order of preference that has
   * not: its narinfo might be preferred to theirs. "later": clients' requests queue, or the order
   * of preference is not known yet.
   */
  spare(): SpareUpstreams | "later" {
    const up = this.#upstreams.filter((upstream) => !upstream.isDown("narinfo"));
    const isRanked = up.length < 2 || up.every(({ priority }) => priority !== undefined);
    if (!isRanked || up.some(({ source }) => source.hasQueue)) return "later";
    const ranked = up.map((upstream, order) => ({ upstream, order })).sort(preference);
    const urls: string[] = [];
    for (const { upstream } of ranked) {
      if (!upstream.isSpare("narinfo")) break;
      urls.push(upstream.source.url);
    }
    return { urls, isComplete: urls.length === up.length };
  }

  /** True for an upstream that sends NARs and has capacity to spare. */
  isSpare(url: string): boolean {
    return this.#find(url)?.isSpare("nar") ?? false;
  }

  /** True for an upstream where clients' requests queue. */
  hasQueue(url: string): boolean {
    return this.#find(url)?.source.hasQueue ?? false;
  }

  /** Notes how long an answer with a NAR took to its head; Infinity for none in time, or outrun. */
  noteNarTime(url: string, tookMs: number): void {
    this.#find(url)?.source.noteNarTime?.(tookMs);
  }

  /** Notes that a client waited long for this path, and that the upstream is slow. */
  noteSlow(url: string, storePathHash: StorePathHash): void {
    this.#find(url)?.noteSlow(storePathHash);
  }

  /** Notes that the upstream refused a request because it was too busy. */
  busy(url: string): void {
    this.#find(url)?.source.busy?.();
  }

  /**
   * Probes these upstreams if all of them are down for this kind: a request must not fail because
   * the next probe is not due yet. Resolves within a second.
   */
  async probeIfDown(urls: Iterable<string>, kind: RequestKind): Promise<void> {
    const upstreams = [...urls].flatMap((url) => this.#find(url) ?? []);
    if (upstreams.every((upstream) => upstream.isDown(kind))) await probed(upstreams, kind);
  }

  /** Statuses in the order in which the operator gave the upstreams. */
  statuses(): readonly UpstreamStatus[] {
    return this.#upstreams.map((upstream) => ({
      url: upstream.source.url,
      isUp: upstream.looksUp("narinfo"),
      sendsNars: upstream.looksUp("nar"),
      priority: upstream.priority,
    }));
  }

  /** URLs of the upstreams in order of preference; those that are down for this kind come last. */
  order(kind: RequestKind): readonly string[] {
    return this.#upstreams
      .map((upstream, order) => ({ upstream, order }))
      .sort((a, b) =>
        Number(a.upstream.isDown(kind)) - Number(b.upstream.isDown(kind)) ||
        preference(a, b)
      )
      .map(({ upstream }) => upstream.source.url);
  }

  /** False for a source that is no upstream. */
  has(url: string): boolean {
    return this.#find(url) !== undefined;
  }

  isDown(url: string, kind: RequestKind): boolean {
    return this.#find(url)?.isDown(kind) ?? false;
  }

  /** How long a NAR request to this upstream is worth waiting for. */
  waitOf(url: string): UpstreamWait {
    return this.#find(url)?.waitOf("nar") ?? "none";
  }

  /** How long a document of a better upstream is waited for once another one has it. */
  documentPatienceMs(url: string): number {
    return this.#find(url)?.usual.document.patienceMs ?? 0;
  }

  /** Notes how long an answer to a document request took. */
  noteDocumentTime(url: string, tookMs: number): void {
    this.#find(url)?.usual.document.note(tookMs);
  }

  /** Notes an exchange that the pool did not see: its answer, or why none came. */
  note(url: string, kind: RequestKind, reason: NoAnswerReason | undefined): void {
    this.#find(url)?.note(kind, reason);
  }

  /** Notes the result of a NAR request. A source that is no upstream has no health. */
  noteNar(url: string, reading: UpstreamReading): void {
    const upstream = this.#find(url);
    if (upstream === undefined) return;
    this.#deps.observeNar(url, reading);
    upstream.note("nar", noAnswerReasonOf(reading));
  }

  /**
   * Finds out which upstreams are down, before a client waits for one. Never rejects;
   * empty if the pool is disposed of meanwhile.
   */
  async start(): Promise<readonly StartProbe[]> {
    const probes = await Promise.all(this.#upstreams.map(async (upstream) => {
      return { url: upstream.source.url, error: await upstream.probeAtStart() };
    }));
    return this.#isOver ? [] : probes;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    for (const query of this.#queries) query[Symbol.dispose]();
    for (const upstream of this.#upstreams) upstream[Symbol.dispose]();
  }

  #ask(
    storePathHash: StorePathHash,
    upstreams: readonly PooledUpstream[],
    given: Omit<PoolRequest, "storePathHash">,
  ): Promise<PoolAnswer> {
    const { waits } = this.#deps;
    const request = { ...given, storePathHash };
    const query = new NarinfoQuery(upstreams, {
      rank: request.rank,
      mayGoOn: this.#queries.size < LATE_QUERIES_MAX,
      asked: waits && ((url) => waits.begin(storePathHash, url)),
      observe: (upstream, reading) => this.#deps.observe(upstream, reading, request),
      waited: (upstream, wait) => {
        const isSlow = this.#deps.waited(upstream, storePathHash, wait);
        if (isSlow && wait.isLate) this.noteSlow(upstream, storePathHash);
      },
    });
    this.#queries.add(query);
    query.ended.then(() => this.#queries.delete(query));
    return query.ask(storePathHash);
  }

  #find(url: string): PooledUpstream | undefined {
    return this.#upstreams.find(({ source }) => source.url === url);
  }
}

async function probed(upstreams: readonly PooledUpstream[], kind: RequestKind): Promise<void> {
  await Promise.all(upstreams.map((upstream) => upstream.probed(kind)));
}
