import type { NarBodySource } from "../../upstream/upstream.ts";
import type { FetchListener, NarFetch, NarFetcher } from "./nar_fetcher.ts";
import type { NarSink } from "./nar_sink.ts";
import { SinkFetch } from "./sink_fetch.ts";

/** Makes the sink of one file. The listener hears what it gets. */
export type OpenSink = (listener: FetchListener) => NarSink;

export interface SinkFetcherDeps {
  /** By the upstream's URL. */
  readonly narSources: ReadonlyMap<string, Pick<NarBodySource, "openNar">>;
  /** Longest silence within a body. */
  readonly idleTimeoutMs: number;
}

/** Fetches NAR files into sinks on this thread. */
export class SinkFetcher implements NarFetcher<OpenSink> {
  readonly #deps: SinkFetcherDeps;

  constructor(deps: SinkFetcherDeps) {
    this.#deps = deps;
  }

  begin(open: OpenSink, listener: FetchListener): NarFetch {
    const { narSources, idleTimeoutMs } = this.#deps;
    const fetch = new SinkFetch(() => open(listener));
    return {
      async from(source, taken = () => undefined) {
        const upstream = narSources.get(source.upstream);
        if (upstream === undefined) return { type: "absent" };
        return await fetch.from({ upstream, source, idleTimeoutMs, taken });
      },
      [Symbol.dispose]: () => void fetch[Symbol.asyncDispose](),
    };
  }
}
