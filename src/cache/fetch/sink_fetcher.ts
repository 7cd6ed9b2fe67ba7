import { messageOf } from "../../base/failure.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import type { NarBodySource } from "../../upstream/upstream.ts";
import { fetchNar } from "./fetch_nar.ts";
import {
  FetchError,
  fetchFailureOf,
  type FetchListener,
  type FetchOutcome,
  type NarFetch,
  type NarFetcher,
  type NarSink,
} from "./nar_fetcher.ts";

/** Opens the sink of one file. The sink calls the listener. */
export type OpenSink = (listener: FetchListener) => NarSink;

/** An upstream, or another member. */
export interface NarClient extends Pick<NarBodySource, "openNar"> {
  /** The longest silence within a body of this source. */
  readonly idleTimeoutMs?: number;
  /** True where the head of a response says that a larder is at work: its bytes may come later. */
  readonly isTakenByHead?: boolean;
}

export interface SinkFetcherDeps {
  /** Sources of NARs by the upstream's URL. */
  readonly narClients: Pick<ReadonlyMap<string, NarClient>, "get">;
  /** The longest silence within a body, unless the source has its own. */
  readonly idleTimeoutMs: number;
}

/** Fetches NAR files into sinks on this thread. */
export class SinkFetcher implements NarFetcher<OpenSink> {
  readonly #deps: SinkFetcherDeps;

  constructor(deps: SinkFetcherDeps) {
    this.#deps = deps;
  }

  begin(open: OpenSink, listener: FetchListener): NarFetch {
    const { narClients, idleTimeoutMs } = this.#deps;
    const fetch = new SinkFetch(() => open(listener));
    return {
      async from(source, taken = () => undefined, isFinal = false) {
        const upstream = narClients.get(source.upstream);
        if (upstream === undefined) return { type: "absent" };
        return await fetch.from({
          ...{ upstream, source, taken, isFinal },
          idleTimeoutMs: upstream.idleTimeoutMs ?? idleTimeoutMs,
        });
      },
      [Symbol.dispose]: () => void fetch[Symbol.asyncDispose](),
    };
  }
}

/** One request for a file to the upstream of `source`. */
export interface SourceRequest {
  readonly upstream: Pick<NarClient, "openNar" | "isTakenByHead">;
  readonly source: NarSource;
  readonly idleTimeoutMs: number;
  /** Called if this source is the first to answer. */
  readonly taken: () => void;
  /** True: no retries; default: false. */
  readonly isFinal?: boolean;
}

/**
 * One NAR file in flight, into one sink. Several requests may run at a time: the first source to
 * answer writes, the others end as "outrun".
 */
export class SinkFetch implements AsyncDisposable {
  readonly #open: () => NarSink;
  #sink: NarSink | undefined;
  readonly #requests = new Map<AbortController, Promise<FetchOutcome>>();
  /** Ends the source that has answered; `undefined` while there is none. */
  #taken: AbortController | undefined;
  #isOver = false;

  /** `open` is called once, for the first source. */
  constructor(open: () => NarSink) {
    this.#open = open;
  }

  /** Fetches the rest from `source`. Never rejects. */
  async from(request: SourceRequest): Promise<FetchOutcome> {
    if (this.#isOver) return { type: "failed", reason: "cancelled", detail: "it is over" };
    const abort = new AbortController();
    const running = this.#fetch(request, abort);
    this.#requests.set(abort, running);
    try {
      return await running;
    } finally {
      this.#requests.delete(abort);
      if (this.#taken === abort) this.#taken = undefined;
    }
  }

  /** Ends all requests, then closes the sink. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    for (const abort of this.#requests.keys()) abort.abort();
    await Promise.all(this.#requests.values());
    this.#sink?.[Symbol.dispose]();
    this.#sink = undefined;
  }

  async #fetch(
    { upstream, source, idleTimeoutMs, taken, isFinal = false }: SourceRequest,
    abort: AbortController,
  ): Promise<FetchOutcome> {
    let requests = 0;
    try {
      const outcome = await fetchNar({
        ...{ upstream, source, idleTimeoutMs },
        sink: this.#sink ??= this.#open(),
        request: { signal: abort.signal, isFinal, requested: () => void requests++ },
        take: () => this.#take(abort, taken),
      });
      return { ...outcome, requests };
    } catch (error) {
      return { type: "failed", reason: fetchFailureOf(error), detail: messageOf(error) };
    }
  }

  #take(abort: AbortController, taken: () => void): boolean {
    if (this.#taken !== undefined) return false;
    this.#taken = abort;
    for (const other of this.#requests.keys()) {
      if (other !== abort) other.abort(new FetchError("outrun", "another has answered first"));
    }
    taken();
    return true;
  }
}
