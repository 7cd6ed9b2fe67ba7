import { type FakeUpstream, fakeUpstream } from "./fake_upstream.ts";
import { Gate } from "./faults.ts";
import type { StoreObject } from "./store_object.ts";
import { TestCache, type TestCacheOptions } from "./test_cache.ts";
import type { TestListener } from "./test_listener.ts";

/** A cold cache on a port, and an upstream that sends a NAR only as far as its gate lets it. */
export class GatedNar implements AsyncDisposable {
  readonly gate: Gate;
  readonly upstream: FakeUpstream;
  readonly cache: TestCache;
  readonly server: TestListener;
  /** The NAR's path in the cache. */
  readonly path: string;
  /** The NAR file of the upstream. */
  readonly bytes: Uint8Array;
  readonly #opened: AsyncDisposable;

  private constructor(
    parts: Pick<GatedNar, "gate" | "upstream" | "cache" | "server" | "path" | "bytes">,
    opened: AsyncDisposable,
  ) {
    this.gate = parts.gate;
    this.upstream = parts.upstream;
    this.cache = parts.cache;
    this.server = parts.server;
    this.path = parts.path;
    this.bytes = parts.bytes;
    this.#opened = opened;
  }

  static async open(
    object: StoreObject,
    options: Omit<TestCacheOptions, "upstreams"> = {},
    headers: HeadersInit = {},
  ): Promise<GatedNar> {
    await using opening = new AsyncDisposableStack();
    const gate = new Gate();
    const upstream = opening.use(await fakeUpstream({ objects: [object], stored: true }));
    upstream.breakNar(gate.fault);
    const cache = opening.use(await TestCache.open({ ...options, upstreams: [upstream] }));
    const path = await cache.narPath(object.storePathHash, headers);
    const { bytes } = await upstream.narFileOf(object);
    const server = opening.use(cache.listen());
    return new GatedNar({ gate, upstream, cache, server, path, bytes }, opening.move());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened[Symbol.asyncDispose]();
  }
}
