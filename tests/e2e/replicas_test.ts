import assert from "node:assert/strict";
import { within } from "../../src/base/deadline.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { FaultProxy } from "../support/fault_proxy.ts";
import { Gate, stallAfter } from "../support/faults.ts";
import type { LarderFlags, LarderProcess } from "../support/larder_process.ts";
import { testUnless } from "../support/program.ts";
import { record } from "../support/reliability_record.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { Replicas } from "../support/replicas.ts";
import { runLarder } from "../support/run_larder.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { storageWords } from "../support/shared_servers.ts";
import { makeStoreObject } from "../support/store_object.ts";

const NAR_BYTES = 3_000_000;
const LARGE_BYTES = 40_000_000;
const ANSWER_MAX_MS = 10_000;
/** Within the default of `--cache-upstream-body-idle-timeout`, which is for upstreams. */
const LEFT_MAX_MS = 25_000;
const TOKEN = "a-token-of-some-length";
const HEADERS = { authorization: `Bearer ${TOKEN}` };
/** What `checkStorage` has looked for. */
const MEMBERS = { area: "members", kept: "nar" } as const;

let redis: RedisServer;

Deno.test.beforeAll(async () => {
  if (redisMissing === "") redis = await RedisServer.open();
});
Deno.test.afterAll(() => redis?.[Symbol.asyncDispose]());

/** Two replicas; the first one downloads a NAR whose second half has not come yet. */
class Scene implements AsyncDisposable {
  readonly gate = new Gate();
  readonly #opened = new AsyncDisposableStack();

  private constructor(
    readonly upstream: FakeUpstream,
    readonly replicas: Replicas,
    readonly bytes: Uint8Array,
    readonly path: string,
  ) {}

  static async open({ narBytes = NAR_BYTES, ...options }: SceneOptions = {}): Promise<Scene> {
    const object = makeStoreObject({ name: "streamed", size: narBytes });
    const upstream = await fakeUpstream({ objects: [object], stored: true });
    const replicas = await Replicas.start({ upstream, redis, ...options });
    const { url } = replicas.at(0);
    const narinfo = await fetch(`${url}/${object.storePathHash}.narinfo`, { headers: HEADERS });
    const path = `/${/^URL: (.*)$/m.exec(await narinfo.text())?.[1]}`;
    const { bytes } = await upstream.narFileOf(object);
    const scene = new Scene(upstream, replicas, bytes, path);
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
  async client(place: number): Promise<Client> {
    const { url } = this.replicas.at(place);
    const response = await fetch(url + this.path, { headers: HEADERS });
    assert.equal(response.status, 200);
    const client = new Client(response);
    const first = await within(client.atLeast(this.bytes.length / 3), ANSWER_MAX_MS);
    assert.ok(first, "the first bytes come");
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

  [Symbol.asyncDispose](): Promise<void> {
    this.gate.open();
    return this.#opened.disposeAsync();
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

interface SceneOptions {
  readonly narBytes?: number;
  readonly count?: number;
  readonly flags?: LarderFlags;
  readonly advertised?: (port: number, place: number) => number | undefined;
}

/** Reads a body, and keeps what came. */
class Client {
  readonly cache: string | null;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  readonly #pieces: Uint8Array<ArrayBuffer>[] = [];
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
  async all(): Promise<Uint8Array<ArrayBuffer>> {
    while (await this.#more());
    return new Uint8Array(await new Blob(this.#pieces).arrayBuffer());
  }

  async #more(): Promise<boolean> {
    const { value, done } = await this.#reader.read();
    if (value !== undefined) this.#pieces.push(value);
    this.#received += value?.length ?? 0;
    return !done;
  }
}

testUnless(
  redisMissing,
  "replicas: a client gets the first bytes from the replica that downloads",
  async () => {
    await using scene = await Scene.open();
    const one = await scene.client(0);
    const other = await scene.client(1);
    const third = await scene.client(1);
    scene.gate.open();

    for (const client of [one, other, third]) assertSameBytes(await client.all(), scene.bytes);

    assert.deepEqual([one.cache, other.cache, third.cache], ["MISS", "JOINED", "JOINED"]);
    assert.equal(scene.narRequests, 1);
    const { url } = scene.replicas.at(0);
    await scene.replicas.at(1).logged("reading nar from another member", ({ upstream }) => (
      upstream === url
    ));
  },
);

testUnless(
  redisMissing,
  "replicas: they send each other the token that reading needs",
  async () => {
    await using scene = await Scene.open({ flags: { "cache-get-token": TOKEN } });
    const one = await scene.client(0);
    const other = await scene.client(1);
    scene.gate.open();
    for (const client of [one, other]) assertSameBytes(await client.all(), scene.bytes);
    assert.equal(scene.narRequests, 1);
  },
);

testUnless(redisMissing, "replicas: the request of a replica goes no further", async () => {
  await using scene = await Scene.open();
  const { url } = scene.replicas.at(1);
  const headers = { ...HEADERS, "larder-member": "host.1.other" };

  const answer = await fetch(url + scene.path, { headers });

  await answer.body?.cancel();
  assert.equal(answer.status, 404);
  assert.equal(scene.narRequests, 0);
});

testUnless(redisMissing, "replicas: a killed holder costs one more upstream request", async () => {
  await killedHolder({ count: 3 });
  const fault = "the larder that downloads a NAR is killed";
  record({ ...MEMBERS, fault: `${fault}; its client`, saw: "cut" });
  record({ ...MEMBERS, fault: `${fault}; clients of others`, saw: "whole" });
});

testUnless(redisMissing, "replicas: … also one that is killed far into a large NAR", async () => {
  await killedHolder({ count: 3, narBytes: LARGE_BYTES });
});

async function killedHolder(options: SceneOptions): Promise<void> {
  await using scene = await Scene.open(options);
  const one = await scene.client(0);
  const others = await Promise.all([1, 1, 1, 2, 2].map((place) => scene.client(place)));
  const { replicas } = scene;
  replicas.at(0).kill("SIGKILL");
  await assert.rejects(one.all());
  scene.gate.open();

  for (const other of others) assertSameBytes(await other.all(), scene.bytes);

  assert.equal(scene.narRequests, 2, "however many clients read it");
  // The dead holder's lock is in nobody's way.
  const late = await scene.client(1);
  assertSameBytes(await late.all(), scene.bytes);
  assert.equal(scene.narRequests, 2);
  const freed = "lock of an absent member freed";
  await eventually("a member takes the lock", () => (
    [1, 2].some((place) => replicas.at(place).lines.some(({ msg }) => msg === freed))
  ));
  await scene.checkStorage();
}

testUnless(
  redisMissing,
  "replicas: a holder that is late costs one more upstream request",
  async () => {
    await using scene = await Scene.open({ count: 3 });
    const one = await scene.client(0);
    const holder = scene.replicas.at(0);
    holder.kill("SIGSTOP");

    const others = await Promise.all([1, 1, 1, 1, 1].map((place) => scene.client(place)));
    const later = await Promise.all([1, 2, 2].map((place) => scene.client(place)));
    scene.gate.open();

    for (const other of [...others, ...later]) assertSameBytes(await other.all(), scene.bytes);
    assert.equal(scene.narRequests, 2, "however many clients ask meanwhile");
    holder.kill("SIGCONT");
    assertSameBytes(await one.all(), scene.bytes);
    await scene.checkStorage();
  },
);

testUnless(redisMissing, "replicas: no client waits for bytes that it has already", async () => {
  await using scene = await Scene.open();
  const one = await scene.client(0);
  const other = await scene.client(1);
  scene.upstream.mend();
  // From its start the NAR comes slowly now.
  const over = Promise.withResolvers<void>();
  using _over = { [Symbol.dispose]: over.resolve };
  const slowly = stallAfter(1_000, over.promise);
  scene.upstream.breakNar((answer, exchange) =>
    exchange.headers.has("range") ? answer : slowly(answer, exchange)
  );
  scene.replicas.at(0).kill("SIGKILL");
  await assert.rejects(one.all());

  const whole = await within(other.all(), ANSWER_MAX_MS);

  assertSameBytes(whole, scene.bytes);
});

testUnless(redisMissing, "replicas: a paused holder is left, and harms nothing later", async () => {
  const flags = { "cache-lock-download-ttl": "1s" };
  await using scene = await Scene.open({ flags });
  const one = await scene.client(0);
  const others = await Promise.all([1, 1, 1].map((place) => scene.client(place)));
  const holder = scene.replicas.at(0);
  holder.kill("SIGSTOP");
  scene.gate.open();

  const all = await within(Promise.all(others.map((other) => other.all())), LEFT_MAX_MS);
  assert.ok(all, "the next source sends the rest in time");
  for (const whole of all) assertSameBytes(whole, scene.bytes);
  assert.equal(scene.narRequests, 2, "however many clients read it");
  const next = await scene.client(1);
  assertSameBytes(await next.all(), scene.bytes);
  holder.kill("SIGCONT");

  assertSameBytes(await one.all(), scene.bytes);
  await scene.checkStorage();
  const fault = "the larder that downloads a NAR is paused beyond the time of its lock, and wakes";
  record({ ...MEMBERS, fault, saw: "whole" });
});

testUnless(redisMissing, "replicas: a cut between them does not show in the body", async () => {
  let proxy: FaultProxy | undefined;
  await using proxies = new AsyncDisposableStack();
  const advertised = (port: number, place: number) => {
    if (place > 0) return port;
    proxy = proxies.use(new FaultProxy({ targetPort: port }));
    return proxy.port;
  };
  await using scene = await Scene.open({ advertised });
  const one = await scene.client(0);
  const other = await scene.client(1);
  assert.ok(proxy);
  proxy.isRefusing = true;
  proxy.cutAll();
  // Else the first replica may store the NAR before the other one asks.
  await eventually("the other replica asks the upstream", () => scene.narRequests === 2);
  scene.gate.open();

  for (const client of [one, other]) assertSameBytes(await client.all(), scene.bytes);

  assert.equal(scene.narRequests, 2);
  await eventually("the other replica has asked through the proxy", () => (
    (proxy?.connectionCount ?? 0) > 0
  ));
  await scene.checkStorage();
  record({ ...MEMBERS, fault: "larders are cut off from each other halfway", saw: "whole" });
});
