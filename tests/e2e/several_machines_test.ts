import assert from "node:assert/strict";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { composeServices, kubernetesPods, placedHere, startNginx } from "../support/deployment.ts";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { freePort } from "../support/free_port.ts";
import {
  type LarderFlags,
  type LarderProcess,
  LONG_TIMEOUTS,
  startLarder,
} from "../support/larder_process.ts";
import { PostgresServer } from "../support/postgres.ts";
import { postgresMissing } from "../support/postgres_missing.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { S3_KEYS, S3_UNAVAILABLE, S3Server } from "../support/s3_server.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";
import { isOfSlowness } from "../support/slow_machine.ts";
import { tempFolder } from "../support/temp_folder.ts";

const objects = Array.from({ length: 8 }, (_, seed) => (
  makeStoreObject({ name: "deployed", size: 50_000, seed })
));

const postgres = PostgresServer.start();
const s3 = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

testUnless(
  postgresMissing || redisMissing || programsMissing("nginx"),
  "several machines: the compose file's processes serve as one, and one of them may end",
  async () => {
    const services = composeServices();
    const [program, ...words] = services["redis"]?.command ?? [];
    assert.equal(program, "redis-server");
    await using redis = await RedisServer.open({ words });
    const [balancer, one, other] = [freePort(), freePort(), freePort()];
    const { POSTGRES_USER: user, POSTGRES_PASSWORD } = services["database"]?.environment ?? {};
    const places = {
      // The image names its database after the user.
      [`postgres://${user}:${POSTGRES_PASSWORD}@database/${user}`]: newDatabase(),
      "redis:6379": redis.address,
      "larder-1:8501": `127.0.0.1:${one}`,
      "larder-2:8501": `127.0.0.1:${other}`,
      "listen 8501": `listen 127.0.0.1:${balancer}`,
      [services["balancer"]?.networks?.default.ipv4_address ?? assert.fail()]: "127.0.0.1",
    };
    await using upstream = await fakeUpstream({ objects, stored: true });
    using volume = tempFolder();
    const start = (name: string, port: number) => {
      const { environment = {}, volumes } = services[name] ?? {};
      assert.deepEqual(volumes, ["larder:/var/lib/larder"]);
      const flags = { ...flagsOf(upstream, port), "cache-storage-local": volume.path };
      return startLarder(flags, JSON.parse(placedHere(JSON.stringify(environment), places)));
    };
    await using first = await start("larder-1", one);
    await using second = await start("larder-2", other);
    await using _nginx = await startNginx(places, balancer);

    const front = `http://127.0.0.1:${balancer}`;
    const page = await fetch(front, { headers: { accept: "text/html" } });
    assert.ok((await page.text()).includes(front), "the page knows its URL");
    // The larders believe the balancer about its client.
    const headers = { "x-forwarded-for": "203.0.113.9" };
    const upload = `${front}/upload/nar/${"0".repeat(52)}.nar`;
    await (await fetch(upload, { method: "PUT", headers, body: "x" })).text();
    const { client } = await Promise.any([first, second].map((larder) => (
      larder.logged("request", ({ method }) => method === "PUT")
    )));
    assert.equal(client, "203.0.113.9");

    await pullAll(balancer, objects.slice(0, 4));
    first.kill("SIGTERM");
    await first.logged("server shutdown");
    await pullAll(balancer, objects);

    assert.equal((await first.ended).code, 0);
    assertServed(upstream, [first, second]);
  },
);

Deno.test("several machines: each larder of the compose file keeps its name in a new container", () => {
  const larders = Object.values(composeServices()).filter(({ environment }) => (
    environment?.["CACHE_ADVERTISE_URL"] !== undefined
  ));
  assert.equal(larders.length, 2);
  const { balancer } = composeServices();
  const addresses = [...larders, balancer].map((one) => one?.networks?.default.ipv4_address);
  // nginx keeps the addresses that it finds at its start.
  assert.ok(addresses.every((address) => address?.startsWith("172.28.85.")));
  assert.equal(new Set(addresses).size, 3);
  for (const { hostname, environment } of larders) {
    assert.equal(environment?.["CACHE_ADVERTISE_URL"], `http://${hostname}:8501`);
  }
});

testUnless(
  postgresMissing || redisMissing || S3_UNAVAILABLE,
  "several machines: the pods of the Kubernetes manifest start, are ready and serve as one",
  async () => {
    const { pods, container, settings, secretKeys } = kubernetesPods();
    await using redis = await RedisServer.open();
    await using upstream = await fakeUpstream({ objects, stored: true });
    using secrets = tempFolder();
    const contents: Readonly<Record<string, string>> = {
      "signing-key": generateSecretKey("cache.example-1").text,
      "database-password": "change-me",
      "s3-access-key-id": S3_KEYS.accessKeyId,
      "s3-secret-access-key": S3_KEYS.secretAccessKey,
    };
    for (const [file, key] of Object.entries(secretKeys)) {
      const content = contents[key] ?? assert.fail(`The secret has no key ${key}`);
      Deno.writeTextFileSync(`${secrets.path}/${file}`, content, { mode: 0o440 });
    }
    using config = tempFolder();
    Deno.writeTextFileSync(`${config.path}/config.yaml`, settings);
    assert.ok(s3);
    Deno.mkdirSync(`${s3.bucketsFolder}/larder`);
    const ports = pods.map(() => freePort());
    const places = {
      "postgres://larder@database/larder": newDatabase(),
      "redis:6379": redis.address,
      "http://s3.example": `http://127.0.0.1:${s3.port}`,
      "/run/larder": secrets.path,
      "/etc/larder": config.path,
      ...Object.fromEntries(pods.map(({ host }, at) => [host, `127.0.0.1:${ports[at]}`])),
    };
    await using started = new AsyncDisposableStack();
    const larders = await Promise.all(pods.map(async ({ args }, at) => {
      const flags = Object.fromEntries(
        args.slice(1).map((word) => {
          return placedHere(word, places).slice("--".length).split(/=(.*)/s);
        }),
      );
      return started.use(await startLarder({ ...flags, ...flagsOf(upstream, ports[at] ?? 0) }));
    }));

    for (const { url } of larders) {
      const { startupProbe, readinessProbe, livenessProbe } = container;
      for (const probe of [startupProbe, readinessProbe, livenessProbe]) {
        const answer = await fetch(url + probe.httpGet.path);
        assert.equal(answer.status, 200, await answer.text());
      }
    }
    for (const { port } of larders) await pullAll(port, objects);

    assertServed(upstream, larders);
  },
);

/** The flags that only this machine needs: its own ports, and no upstream on the internet. */
function flagsOf(upstream: FakeUpstream, port: number): LarderFlags {
  return {
    "server-addr": `127.0.0.1:${port}`,
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    ...LONG_TIMEOUTS,
  };
}

/** The URL of an empty database, without its password, which the server does not ask for. */
function newDatabase(): string {
  assert.ok(postgres);
  const url = new URL(postgres.createDatabase());
  url.password = "";
  return url.href;
}

async function pullAll(port: number, wanted: readonly StoreObject[]): Promise<void> {
  for (const { storePathHash } of wanted) {
    const { status } = await servedNar(port, await servedNarinfo(port, storePathHash));
    assert.equal(status, 200);
  }
}

/** One upstream request for each path, and nothing to complain of. */
function assertServed(upstream: FakeUpstream, larders: readonly LarderProcess[]): void {
  assert.equal(upstream.count(/\.narinfo$/), objects.length);
  assert.equal(upstream.count(/^\/nar\//), objects.length);
  const complaints = larders.flatMap(({ lines }) => lines)
    .filter((line) => /^(?:warn|error)$/.test(line.level) && !isOfSlowness(line));
  assert.deepEqual(complaints, []);
}
