import type { StorePathHash } from "../nix/store_path.ts";
import { NarinfoQuery, type PoolAnswer, preference } from "./narinfo_query.ts";
import { PooledUpstream } from "./pooled_upstream.ts";
import type { NarinfoReading, NoAnswerReason, QueuedNarinfoSource } from "./upstream.ts";
import { looksUp, type Patience, patienceOf } from "./upstream_health.ts";

/** An upstream's state, for people. */
export interface UpstreamStatus {
  readonly url: string;
  readonly isUp: boolean;
  /** `undefined` until it is known. */
  readonly priority: number | undefined;
}

export interface UpstreamPoolDeps {
  /** In the order in which the operator gave them. */
  readonly upstreams: readonly QueuedNarinfoSource[];
  /** Called with every answer, for logs and counts. */
  readonly observe: (upstream: string, reading: NarinfoReading, requestId: string) => void;
  /** Called with the error of an upstream that does not answer at the start. */
  readonly unanswered: (upstream: string, error: unknown) => void;
  /** Called when an upstream goes down, and when it is up again. */
  readonly changed: (upstream: string, isDown: boolean) => void;
}

export interface AskOptions {
  /** Of the client's request; for the log. */
  readonly requestId: string;
  /** URLs of upstreams to leave out. */
  readonly except?: ReadonlySet<string> | undefined;
}

/** Queries in flight beyond this end when their client has its answer. */
const LATE_QUERIES_MAX = 200;

/** All upstreams, asked side by side. */
export class UpstreamPool implements Disposable {
  readonly #deps: UpstreamPoolDeps;
  readonly #upstreams: readonly PooledUpstream[];
  readonly #queries = new Set<NarinfoQuery>();

  constructor(deps: UpstreamPoolDeps) {
    this.#deps = deps;
    this.#upstreams = deps.upstreams.map((source) =>
      new PooledUpstream(source, (isDown) => deps.changed(source.url, isDown))
    );
  }

  /**
   * Asks every upstream that is up for a narinfo. While all are down, it probes them first. The
   * best valid offer wins, by priority, then by order, as soon as no answer to come can beat it.
   */
  narinfo(storePathHash: StorePathHash, options: AskOptions): Promise<PoolAnswer> {
    const upstreams = this.#upstreams.filter(({ source }) => !options.except?.has(source.url));
    const ask = () => this.#ask(storePathHash, upstreams.filter(({ isDown }) => !isDown), options);
    return upstreams.some(({ isDown }) => !isDown) ? ask() : probed(upstreams).then(ask);
  }

  /**
   * Probes these upstreams if all of them are down: a request must not fail because the next probe
   * is not due yet. Resolves within a second.
   */
  async probeIfDown(urls: Iterable<string>): Promise<void> {
    const upstreams = [...urls].flatMap((url) => this.#find(url) ?? []);
    if (upstreams.every(({ isDown }) => isDown)) await probed(upstreams);
  }

  /** In the order in which the operator gave them. */
  statuses(): readonly UpstreamStatus[] {
    return this.#upstreams.map(({ source: { url }, health, priority }) => (
      { url, isUp: looksUp(health), priority }
    ));
  }

  /** URLs of the upstreams in order of preference; those that are down come last. */
  order(): readonly string[] {
    return this.#upstreams
      .map((upstream, order) => ({ upstream, order }))
      .sort((a, b) =>
        Number(a.upstream.isDown) - Number(b.upstream.isDown) ||
        preference(a, b)
      )
      .map(({ upstream }) => upstream.source.url);
  }

  isDown(url: string): boolean {
    return this.#find(url)?.isDown ?? false;
  }

  /** How long a request to this upstream is worth waiting for. */
  patience(url: string): Patience {
    const upstream = this.#find(url);
    return upstream === undefined ? "none" : patienceOf(upstream.health);
  }

  /** Notes an exchange that the pool did not see: its answer, or why none came. */
  note(url: string, reason: NoAnswerReason | undefined): void {
    this.#find(url)?.note(reason);
  }

  /** Finds out in the background which upstreams are down, before a client waits for one. */
  start(): void {
    for (const upstream of this.#upstreams) {
      upstream.lookAtStart().then((error) => {
        if (error !== undefined) this.#deps.unanswered(upstream.source.url, error);
      });
    }
  }

  [Symbol.dispose](): void {
    for (const query of this.#queries) query[Symbol.dispose]();
    for (const upstream of this.#upstreams) upstream[Symbol.dispose]();
  }

  #ask(
    storePathHash: StorePathHash,
    upstreams: readonly PooledUpstream[],
    { requestId }: AskOptions,
  ): Promise<PoolAnswer> {
    const query = new NarinfoQuery(upstreams, {
      mayGoOn: this.#queries.size < LATE_QUERIES_MAX,
      observe: (upstream, reading) => this.#deps.observe(upstream, reading, requestId),
    });
    this.#queries.add(query);
    query.over.then(() => this.#queries.delete(query));
    return query.ask(storePathHash);
  }

  #find(url: string): PooledUpstream | undefined {
    return this.#upstreams.find(({ source }) => source.url === url);
  }
}

async function probed(upstreams: readonly PooledUpstream[]): Promise<void> {
  await Promise.all(upstreams.map((upstream) => upstream.probed()));
}
