import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { eventually } from "../support/eventually.ts";
import { FaultProxy } from "../support/fault_proxy.ts";
import { stallAfter } from "../support/faults.ts";
import { testUnless } from "../support/program.ts";
import { record } from "../support/reliability_record.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { ReplicasScene, type ReplicasSceneOptions, TOKEN } from "../support/replicas_scene.ts";
import { assertSameBytes } from "../support/same_bytes.ts";

const LARGE_BYTES = 40_000_000;
const WAIT_MAX_MS = 60_000;
/** The area and the name that `checkStorage` checks. */
const MEMBERS = { area: "members", kept: "nar" } as const;

/** A member that takes longer than a third of it is late. */
const SHORT_TIMEOUT = { "cache-upstream-response-header-timeout": "3s" };

let redis: RedisServer;

Deno.test.beforeAll(async () => {
  if (redisMissing === "") redis = await RedisServer.open();
});
Deno.test.afterAll(() => redis?.[Symbol.asyncDispose]());

const open = (options: Omit<ReplicasSceneOptions, "redis"> = {}) =>
  ReplicasScene.open({ redis, ...options });

testUnless(
  redisMissing,
  "replicas: a client gets the first bytes from the replica that downloads",
  async () => {
    await using scene = await open();
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
  "replicas: one that advertises no URL is read where it listens, so a NAR is fetched once",
  async () => {
    for (const flags of [{}, { "server-addr": ":0" }]) {
      await using scene = await open({ advertised: () => undefined, flags });
      const clients = [await scene.client(0), await scene.client(1), await scene.client(1)];
      scene.gate.open();
      for (const client of clients) assertSameBytes(await client.all(), scene.bytes);
      assert.equal(scene.narRequests, 1);
    }
  },
);

testUnless(redisMissing, "replicas: a HEAD asks the replica that downloads", async () => {
  await using scene = await open();
  const one = await scene.client(0);
  const { url } = scene.replicas.at(1);

  const answer = await fetch(url + scene.path, { method: "HEAD" });

  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-length"), `${scene.bytes.length}`);
  assert.equal(answer.headers.get("x-cache"), "JOINED");
  assert.equal(scene.narRequests, 1);
  scene.gate.open();
  assertSameBytes(await one.all(), scene.bytes);
});

testUnless(
  redisMissing,
  "replicas: they send each other the token that reading needs",
  async () => {
    await using scene = await open({ flags: { "cache-get-token": TOKEN } });
    const one = await scene.client(0);
    const other = await scene.client(1);
    scene.gate.open();
    for (const client of [one, other]) assertSameBytes(await client.all(), scene.bytes);
    assert.equal(scene.narRequests, 1);
  },
);

testUnless(redisMissing, "replicas: the request of a replica goes no further", async () => {
  await using scene = await open();
  const { url } = scene.replicas.at(1);
  const headers = { "larder-member": "host.1.other" };

  const answer = await fetch(url + scene.path, { headers });

  await answer.body?.cancel();
  assert.equal(answer.status, 404);
  assert.equal(scene.narRequests, 0);
});

testUnless(
  redisMissing,
  "replicas: a holder that ends by SIGTERM finishes its download, and frees its locks",
  async () => {
    // The locks of other tests are in their own.
    await using ownRedis = await RedisServer.open();
    await using scene = await ReplicasScene.open({ redis: ownRedis });
    const downloadLocks = () => ownRedis.ask("KEYS", "*:download:*").trim();
    const one = await scene.client(0);
    const other = await scene.client(1);
    assert.match(downloadLocks(), /:download:nar:/);
    const holder = scene.replicas.at(0);
    holder.kill("SIGTERM");
    await holder.logged("server shutdown");
    scene.gate.open();

    for (const client of [one, other]) assertSameBytes(await client.all(), scene.bytes);

    assert.equal((await holder.ended).code, 0);
    assert.equal(downloadLocks(), "", "it leaves none until the end of its time");
    assert.equal(scene.narRequests, 1);
    await scene.checkStorage();
  },
);

testUnless(redisMissing, "replicas: a killed holder costs one more upstream request", async () => {
  await killedHolder({ count: 3 });
  const fault = "the larder that downloads a NAR is killed";
  record({ ...MEMBERS, fault: `${fault}; its client`, saw: "cut" });
  record({ ...MEMBERS, fault: `${fault}; clients of others`, saw: "whole" });
});

testUnless(
  redisMissing,
  "replicas: clients of one that is killed far into a large NAR get the rest",
  async () => {
    // A client that the new copy does not reach in five seconds asks an upstream itself.
    await killedHolder({ count: 3, narBytes: LARGE_BYTES }, 2 + OTHERS.length);
  },
);

/** The replicas of the clients that read on. */
const OTHERS = [1, 1, 1, 2, 2];

async function killedHolder(
  options: Omit<ReplicasSceneOptions, "redis">,
  requestsMax = 2,
): Promise<void> {
  await using scene = await open(options);
  const one = await scene.client(0);
  const others = await Promise.all(OTHERS.map((place) => scene.client(place)));
  const { replicas } = scene;
  replicas.at(0).kill("SIGKILL");
  await assert.rejects(one.all());
  scene.gate.open();

  for (const other of others) assertSameBytes(await other.all(), scene.bytes);

  const requests = scene.narRequests;
  assert.ok(requests >= 2 && requests <= requestsMax, `${requests}, however many clients read it`);
  // The dead holder's lock is in nobody's way.
  const late = await scene.client(1);
  assertSameBytes(await late.all(), scene.bytes);
  assert.equal(scene.narRequests, requests);
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
    await using scene = await open({ count: 3, flags: SHORT_TIMEOUT });
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
  await using scene = await open();
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

  const whole = await clock.within(other.all(), WAIT_MAX_MS);

  assert.ok(whole, "the rest comes");
  assertSameBytes(whole, scene.bytes);
});

testUnless(redisMissing, "replicas: a paused holder is left, and harms nothing later", async () => {
  const flags = { "cache-lock-download-ttl": "1s" };
  await using scene = await open({ flags });
  const one = await scene.client(0);
  const others = await Promise.all([1, 1, 1].map((place) => scene.client(place)));
  const holder = scene.replicas.at(0);
  holder.kill("SIGSTOP");
  scene.gate.open();

  const all = await clock.within(Promise.all(others.map((other) => other.all())), WAIT_MAX_MS);
  assert.ok(all, "the rest comes from the next source");
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
  await using scene = await open({ advertised });
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
