import type { FakeUpstream } from "./fake_upstream.ts";
import { freePort } from "./free_port.ts";
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
  /** Where others reach the replica at a place; default: directly. `undefined`: nowhere. */
  readonly advertised?: (port: number, place: number) => number | undefined;
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
    const { upstream, redis, count = 2, flags = {}, advertised = (port) => port } = options;
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
    for (let place = 0; place < count; place++) {
      const port = freePort();
      const reached = redis && advertised(port, place);
      larders.push(opening.use(
        await startLarder({
          "server-addr": `127.0.0.1:${port}`,
          ...all,
          ...(reached === undefined
            ? {}
            : { "cache-advertise-url": `http://127.0.0.1:${reached}` }),
        }),
      ));
    }
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
