import type { FakeUpstream } from "./fake_upstream.ts";
import { freePort } from "./free_port.ts";
import {
  type LarderFlags,
  type LarderProcess,
  LONG_TIMEOUTS,
  startLarder,
} from "./larder_process.ts";
import type { RedisServer } from "./redis_server.ts";
import { tempFolder } from "./temp_folder.ts";

export interface ReplicasOptions {
  readonly upstream: FakeUpstream;
  /** `undefined`: they have no locks. */
  readonly redis?: Pick<RedisServer, "address"> | undefined;
  /** Default 2. */
  readonly count?: number;
  readonly flags?: LarderFlags;
  /** True: each has a folder of its own for partial files, as on a machine of its own. */
  readonly areApart?: boolean;
  /** Where others reach the replica at a place; default: directly. `undefined`: nowhere. */
  readonly advertised?: (port: number, place: number) => number | undefined;
}

/** Larders on one storage. Their upstreams may take their time. */
export class Replicas implements AsyncDisposable {
  readonly #options: ReplicasOptions;
  readonly #opened = new AsyncDisposableStack();
  readonly #storage = this.#opened.use(tempFolder());
  readonly #keyPrefix = `${crypto.randomUUID()}:`;
  readonly #larders: LarderProcess[] = [];

  private constructor(options: ReplicasOptions) {
    this.#options = options;
  }

  static async start(options: ReplicasOptions): Promise<Replicas> {
    await using opening = new AsyncDisposableStack();
    const replicas = opening.use(new Replicas(options));
    const { count = 2 } = options;
    // One after the other: the first one makes the database.
    for (let place = 0; place < count; place++) await replicas.add();
    opening.move();
    return replicas;
  }

  get storage(): string {
    return this.#storage.path;
  }

  get larders(): readonly LarderProcess[] {
    return this.#larders;
  }

  /** Starts one more. */
  async add(): Promise<void> {
    const { upstream, redis, flags = {}, areApart, advertised = (port) => port } = this.#options;
    const port = freePort();
    const { length: place } = this.#larders;
    const reached = redis && advertised(port, place);
    const started = await startLarder({
      "server-addr": `127.0.0.1:${port}`,
      "cache-storage-local": this.storage,
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "prometheus-enabled": "true",
      ...LONG_TIMEOUTS,
      ...(redis === undefined ? {} : {
        "cache-redis-addrs": redis.address,
        "cache-lock-redis-key-prefix": this.#keyPrefix,
      }),
      ...(areApart ? { "cache-temp-path": `${this.storage}/machine-${place}` } : {}),
      ...flags,
      ...(reached === undefined ? {} : { "cache-advertise-url": `http://127.0.0.1:${reached}` }),
    });
    this.#larders.push(this.#opened.use(started));
  }

  /** The larder at a place, whichever that is beyond the last one. */
  at(place: number): LarderProcess {
    const larder = this.#larders[place % this.#larders.length];
    if (larder === undefined) throw new Error("Cannot find replica: there are none");
    return larder;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.disposeAsync();
  }
}
