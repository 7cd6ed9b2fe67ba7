import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import { clock } from "../../src/runtime/current.ts";
import { type FakeUpstream, fakeUpstream } from "./fake_upstream.ts";
import { Gate } from "./faults.ts";
import type { LarderProcess } from "./larder_process.ts";
import { Replicas, type ReplicasOptions } from "./replicas.ts";
import { runLarder } from "./run_larder.ts";
import { storageWords } from "./shared_servers.ts";
import { makeStoreObject } from "./store_object.ts";

/** Token of the clients, for replicas that want one. */
export const TOKEN = "a-token-of-some-length";

const NAR_BYTES = 3_000_000;
const ANSWER_MAX_MS = 60_000;
const HEADERS = { authorization: `Bearer ${TOKEN}` };

/** Replicas of which the first one downloads a NAR whose second half has not come yet. */
export class ReplicasScene implements AsyncDisposable {
  readonly gate = new Gate();
  readonly #opened = new AsyncDisposableStack();
  readonly #clients: BodyReader[] = [];

  private constructor(
    readonly upstream: FakeUpstream,
    readonly replicas: Replicas,
    readonly bytes: Uint8Array,
    readonly path: string,
  ) {}

  static async open(
    { narBytes = NAR_BYTES, ...options }: ReplicasSceneOptions,
  ): Promise<ReplicasScene> {
    const object = makeStoreObject({ name: "streamed", size: narBytes });
    const upstream = await fakeUpstream({ objects: [object], stored: true });
    const replicas = await Replicas.start({ upstream, ...options });
    const { url } = replicas.at(0);
    const narinfo = await fetch(`${url}/${object.storePathHash}.narinfo`, { headers: HEADERS });
    const path = `/${/^URL: (.*)$/m.exec(await narinfo.text())?.[1]}`;
    const { bytes } = await upstream.narFileOf(object);
    const scene = new ReplicasScene(upstream, replicas, bytes, path);
    scene.#opened.use(upstream);
    scene.#opened.use(replicas);
    upstream.breakNar(scene.gate.fault);
    scene.gate.release(narBytes / 2);
    return scene;
  }

  get narRequests(): number {
    return this.upstream.count(/^\/nar\//);
  }

  /** A client of a replica, once it has the first bytes. */
  async client(place: number): Promise<BodyReader> {
    const { url } = this.replicas.at(place);
    const response = await fetch(url + this.path, { headers: HEADERS });
    assert.equal(response.status, 200);
    const client = new BodyReader(response);
    this.#clients.push(client);
    const first = await clock.within(client.atLeast(this.bytes.length / 3), ANSWER_MAX_MS);
    assert.ok(first, `no first bytes within ${ANSWER_MAX_MS} ms`);
    return client;
  }

  /** Fails unless the storage has the one right object, and nothing else. */
  async checkStorage(): Promise<void> {
    for (const larder of this.replicas.larders) stop(larder);
    for (const larder of this.replicas.larders) await larder.ended;
    const words = ["fsck", "--verify-content", ...storageWords(this.replicas.storage)];
    const { status, out, err } = await runLarder(words);
    assert.equal(status, 0, out + err);
  }

  /** The clients leave first: some may still wait for bytes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.gate.open();
    for (const client of this.#clients) await client.leave();
    await this.#opened.disposeAsync();
  }
}

function stop(larder: LarderProcess): void {
  try {
    larder.kill("SIGTERM");
  } catch (error) {
    // The test has killed it.
    if (!(error instanceof TypeError)) throw error;
  }
}

export interface ReplicasSceneOptions extends Omit<ReplicasOptions, "upstream"> {
  readonly narBytes?: number;
}

/** Reads a body, and keeps its bytes. */
class BodyReader {
  readonly cache: string | null;
  readonly #reader: ReadableStreamDefaultReader<Bytes>;
  readonly #pieces: Bytes[] = [];
  #received = 0;

  constructor({ body, headers }: Response) {
    assert.ok(body);
    this.cache = headers.get("x-cache");
    this.#reader = body.getReader();
  }

  async atLeast(bytes: number): Promise<true> {
    while (this.#received < bytes) assert.ok(await this.#more(), "the body ends early");
    return true;
  }

  /** The whole body. Throws where its transfer breaks. */
  async all(): Promise<Bytes> {
    while (await this.#more());
    return new Uint8Array(await new Blob(this.#pieces).arrayBuffer());
  }

  async leave(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined);
  }

  async #more(): Promise<boolean> {
    const { value, done } = await this.#reader.read();
    if (value !== undefined) this.#pieces.push(value);
    this.#received += value?.length ?? 0;
    return !done;
  }
}
