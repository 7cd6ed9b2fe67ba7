import type { FakeUpstream } from "./fake_upstream.ts";
import { type LarderFlags, type LarderProcess, startLarder } from "./larder_process.ts";
import type { RedisServer } from "./redis_server.ts";
import { tempFolder } from "./temp_folder.ts";

export interface ReplicasOptions {
  readonly upstream: FakeUpstream;
  /** `undefined`: they have no locks. */
  readonly redis?: RedisServer | undefined;
  /** Default 2. */
  readonly count?: number;
  readonly flags?: LarderFlags;
}

/** Larders on one storage. */
export class Replicas implements AsyncDisposable {
  readonly storage: string;
  readonly larders: readonly LarderProcess[];
  readonly #opened: AsyncDisposable;

  private constructor(storage: string, larders: readonly LarderProcess[], opened: AsyncDisposable) {
    this.storage = storage;
    this.larders = larders;
    this.#opened = opened;
  }

  static async start(options: ReplicasOptions): Promise<Replicas> {
    const { upstream, redis, count = 2, flags = {} } = options;
    await using opening = new AsyncDisposableStack();
    const { path } = opening.use(tempFolder());
    const all = {
      "cache-storage-local": path,
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "prometheus-enabled": "true",
      ...(redis === undefined ? {} : {
        "cache-redis-addrs": redis.address,
        "cache-lock-redis-key-prefix": `${crypto.randomUUID()}:`,
      }),
      ...flags,
    };
    const larders: LarderProcess[] = [];
    // One after the other: the first one makes the database.
    for (let at = 0; at < count; at++) larders.push(opening.use(await startLarder(all)));
    return new Replicas(path, larders, opening.move());
  }

  /** The larder at a place, whichever that is beyond the last one. */
  at(place: number): LarderProcess {
    const larder = this.larders[place % this.larders.length];
    if (larder === undefined) throw new Error("Cannot find replica: there are none");
    return larder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened[Symbol.asyncDispose]();
  }
}
