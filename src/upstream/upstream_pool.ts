import type { StorePathHash } from "../nix/store_path.ts";
import { type PoolAnswer, preference, Question } from "./question.ts";
import { Standing } from "./standing.ts";
import type { NarinfoReading, PooledSource, Silence } from "./upstream.ts";

/** An upstream as it stands. */
export interface UpstreamStanding {
  readonly url: string;
  readonly isUp: boolean;
  /** `undefined` until it is known. */
  readonly priority: number | undefined;
}

export interface UpstreamPoolDeps {
  /** In the order in which the operator gave them. */
  readonly upstreams: readonly PooledSource[];
  /** Told of every reading, for logs and counts. */
  readonly observe: (upstream: string, reading: NarinfoReading, requestId: string) => void;
  /** Told of an upstream that did not answer when it was looked at at the start, and why. */
  readonly unanswered: (upstream: string, error: unknown) => void;
  /** Told when an upstream goes down, and when it is up again. */
  readonly changed: (upstream: string, isDown: boolean) => void;
}

export interface AskOptions {
  /** Of the request that asks; for the log. */
  readonly requestId: string;
  /** Upstreams that are not asked, by URL. */
  readonly except?: ReadonlySet<string> | undefined;
}

/** With so many open questions none is left to go on when its asker has gone. */
const QUESTIONS_MAX = 200;

/** All upstreams, asked side by side. */
export class UpstreamPool implements Disposable {
  readonly #deps: UpstreamPoolDeps;
  readonly #standings: readonly Standing[];
  readonly #questions = new Set<Question>();

  constructor(deps: UpstreamPoolDeps) {
    this.#deps = deps;
    this.#standings = deps.upstreams.map((source) =>
      new Standing(source, (isDown) => deps.changed(source.url, isDown))
    );
  }

  /**
   * Asks every upstream that is up for a narinfo; with all of them down they are probed first. The
   * best valid offer wins, by priority, then by order; it is chosen as soon as no answer still to
   * come could beat it.
   */
  narinfo(storePathHash: StorePathHash, options: AskOptions): Promise<PoolAnswer> {
    const standings = this.#standings.filter(({ source }) => !options.except?.has(source.url));
    const ask = () => this.#ask(storePathHash, standings.filter(({ isDown }) => !isDown), options);
    return standings.some(({ isDown }) => !isDown) ? ask() : probed(standings).then(ask);
  }

  /**
   * Looks whether one of these upstreams is back where all of them are down: nobody gets a 404
   * because the next probe is not due yet. Resolves within a second.
   */
  async probeIfDown(upstreams: Iterable<string>): Promise<void> {
    const standings = [...upstreams].flatMap((upstream) => this.#find(upstream) ?? []);
    if (standings.every(({ isDown }) => isDown)) await probed(standings);
  }

  /** How many upstreams are up. */
  get healthyCount(): number {
    return this.#standings.filter(({ isUp }) => isUp).length;
  }

  /** In the order in which the operator gave them. */
  standings(): readonly UpstreamStanding[] {
    return this.#standings.map(({ source: { url }, isUp, priority }) => ({ url, isUp, priority }));
  }

  /** URLs of the upstreams in order of preference; those that are down come last. */
  order(): readonly string[] {
    return this.#standings
      .map((standing, order) => ({ standing, order }))
      .sort((a, b) =>
        Number(a.standing.isDown) - Number(b.standing.isDown) ||
        preference(a, b)
      )
      .map(({ standing }) => standing.source.url);
  }

  /** For people: false also when the last thing that was asked of it did not come. */
  isUp(upstream: string): boolean {
    return this.#find(upstream)?.isUp ?? false;
  }

  isDown(upstream: string): boolean {
    return this.#find(upstream)?.isDown ?? false;
  }

  /** True when it is down, and whoever asks it all the same waits for a timeout. */
  isSilent(upstream: string): boolean {
    return this.#find(upstream)?.isSilent ?? false;
  }

  /** Tells the pool what it did not see itself: that an upstream answered, or why not. */
  note(upstream: string, silence: Silence | undefined): void {
    this.#find(upstream)?.note(silence);
  }

  /** Finds out in the background which upstreams are down, before somebody has to wait for one. */
  start(): void {
    for (const standing of this.#standings) {
      standing.lookAtStart().then((error) => {
        if (error !== undefined) this.#deps.unanswered(standing.source.url, error);
      });
    }
  }

  [Symbol.dispose](): void {
    for (const question of this.#questions) question[Symbol.dispose]();
    for (const standing of this.#standings) standing[Symbol.dispose]();
  }

  #ask(
    storePathHash: StorePathHash,
    standings: readonly Standing[],
    { requestId }: AskOptions,
  ): Promise<PoolAnswer> {
    const question = new Question(standings, this.#deps.observe);
    this.#questions.add(question);
    question.over.then(() => this.#questions.delete(question));
    const mayGoOn = this.#questions.size <= QUESTIONS_MAX;
    return question.ask(storePathHash, { requestId, mayGoOn });
  }

  #find(upstream: string): Standing | undefined {
    return this.#standings.find(({ source }) => source.url === upstream);
  }
}

async function probed(standings: readonly Standing[]): Promise<void> {
  await Promise.all(standings.map((standing) => standing.probed()));
}
