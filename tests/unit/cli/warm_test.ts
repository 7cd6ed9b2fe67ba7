import assert from "node:assert/strict";
import type { Bytes } from "../../../src/base/bytes.ts";
import { notKept } from "../../../src/cli/client/pinned_closures.ts";
import { ServerClient, Unreachable } from "../../../src/cli/client/server_client.ts";
import { WARM_PATHS_MAX, WarmClosure } from "../../../src/cli/client/warm_closure.ts";
import { generateSecretKey } from "../../../src/nix/signature.ts";
import { PlayedTime } from "../../support/played_time.ts";
import { type FakeUpstream, fakeUpstream } from "../../support/fake_upstream.ts";
import { status } from "../../support/faults.ts";
import { runLarder } from "../../support/run_larder.ts";
import { chain, makeStoreObject, type StoreObject } from "../../support/store_object.ts";
import { TestCache } from "../../support/test_cache.ts";

const libs = chain(20);
const shared = makeStoreObject({ name: "shared-1", tree: { file: new Uint8Array(9) } });
const twin = makeStoreObject({ name: "twin-1", tree: { file: new Uint8Array(9) } });
const app = makeStoreObject({
  name: "app-1.0",
  references: [...libs, shared, twin],
  selfReference: true,
});
const closure = [...libs, shared, twin, app];

interface Stage extends AsyncDisposable {
  readonly upstream: FakeUpstream;
  readonly cache: TestCache;
  readonly url: string;
}

async function stage(objects: readonly StoreObject[]): Promise<Stage> {
  const stack = new AsyncDisposableStack();
  const upstream = stack.use(await fakeUpstream({ objects, stored: true }));
  const cache = stack.use(await TestCache.open({ upstreams: [upstream] }));
  const { url } = stack.use(cache.listen());
  return { upstream, cache, url, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** The walk itself, without waits between its tries. */
async function warmed(url: string, roots: readonly StoreObject[]): Promise<WarmClosure> {
  using client = new ServerClient({ server: { kind: "http", url }, token: undefined });
  const warm = new WarmClosure({ client, retryDelaysMs: [0, 0, 0] });
  await warm.run(roots.map(({ storePathHash, baseName }) => ({ storePathHash, name: baseName })));
  return warm;
}

Deno.test("larder warm: a closure comes whole, each thing once, and is pinned", async () => {
  await using at = await stage(closure);

  const ran = await runLarder(["warm", "--pin", app.storePath, "--server", at.url]);

  assert.deepEqual([ran.status, ran.err], [0, ""]);
  assert.match(ran.out, /^fetched 23 paths: \S+ \w+ in 22 NAR files\npinned \S+-app-1\.0\n$/);
  assert.equal(at.upstream.count(/narinfo$/), 23);
  assert.equal(at.upstream.count(/^\/nar\//), 22, "two paths share one");
  await at.cache.downloadsOver();
  const [pinned] = await (await at.cache.get("/pins/closures")).json();
  assert.deepEqual([pinned.root, pinned.stored, pinned.missing], [app.storePathHash, 23, 0]);
});

Deno.test("larder warm: what is here already is said, and no figure of clients counts it", async () => {
  await using at = await stage(closure);
  const requestsOf = async () => {
    const { requests, traffic } = await (await at.cache.get("/stats")).json();
    return { requests, traffic };
  };
  await (await at.cache.get(await at.cache.narPath(shared.storePathHash))).bytes();
  await at.cache.downloadsOver();
  const before = await requestsOf();

  const first = await runLarder(["warm", app.storePath, "--server", at.url]);
  await at.cache.downloadsOver();
  const second = await runLarder(["warm", app.storePath, "--server", at.url]);

  assert.match(first.out, /^fetched 2\d paths: .*\nalready here: \d paths?: .* in 1 NAR file\n$/);
  assert.match(second.out, /^already here: 23 paths: \S+ \w+ in 22 NAR files\n$/);
  const after = await requestsOf();
  for (const kind of ["narinfo", "nar"]) {
    assert.ok(after.requests[kind].commands > 40, kind);
    assert.equal(before.requests[kind].commands, 0);
    const { commands: _, ...ofClients } = after.requests[kind];
    const { commands: __, ...ofClientsBefore } = before.requests[kind];
    assert.deepEqual(ofClients, ofClientsBefore, kind);
  }
  assert.equal(after.traffic.served_bytes, before.traffic.served_bytes);
  assert.equal(after.traffic.saved_bytes, before.traffic.saved_bytes);
});

Deno.test("larder warm: a path that is not found is listed, its closure not pinned", async () => {
  const [leaf] = libs;
  assert.ok(leaf);
  await using at = await stage(closure.filter((object) => object !== leaf));

  const words = [app.storePath, shared.baseName, "--pin", "--server", at.url];
  const { status: ended, out, err } = await runLarder(["warm", ...words]);

  assert.equal(ended, 1);
  assert.match(out, /^fetched 22 paths: .*\npinned \S+-shared-1\n$/);
  assert.equal(
    err,
    `larder: not pinned:\n  ${app.storePath}: its closure is not complete; ` +
      `larder pin pins it all the same\nlarder: not fetched:\n  ${leaf.baseName}: ` +
      "not found, here and upstream (404)\n",
  );
  assert.deepEqual(await (await at.cache.get("/pins")).json(), [shared.storePathHash]);
});

Deno.test("larder warm: an upstream whose key the server lacks is named", async () => {
  await using upstream = await fakeUpstream({ objects: [shared], stored: true });
  const { publicKey } = generateSecretKey("another-1");
  await using cache = await TestCache.open({ upstreams: [upstream], trustedKeys: [publicKey] });
  await using server = cache.listen();

  const { status: ended, err } = await runLarder(["warm", shared.baseName, "--server", server.url]);

  assert.equal(ended, 1);
  assert.equal(
    err,
    `larder: not fetched:\n  ${shared.baseName}: ` +
      "not found, or signed by no key that the server trusts (404)\n" +
      `larder: the server trusts no key of ${upstream.url}: start it with ` +
      "--cache-upstream-public-key NAME:KEY\n",
  );
});

Deno.test("larder warm: a NAR that broke on the way is fetched again", async () => {
  const big = makeStoreObject({ name: "big", size: 3_000_000 });
  await using at = await stage([big]);
  using client = new ServerClient({ server: { kind: "http", url: at.url }, token: undefined });
  let broken = 0;
  const request = async (method: string, path: string) => {
    const answer = await client.request(method, path);
    if (!path.startsWith("/nar/") || ++broken > 2) return answer;
    await answer.body?.cancel();
    return new Response(breaksAfter(1_000));
  };
  const warm = new WarmClosure({ client: { request }, retryDelaysMs: [0, 0, 0] });

  await warm.run([{ storePathHash: big.storePathHash, name: big.baseName }]);

  assert.deepEqual([warm.failures, broken], [[], 3]);
  assert.ok(warm.isComplete(big.storePathHash));
  const { pathsDone, bytesDone, bytesKnown } = warm.progress;
  assert.deepEqual([pathsDone, bytesDone], [1, bytesKnown]);
});

function breaksAfter(byteLength: number): ReadableStream<Bytes> {
  let sent = false;
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      if (sent) controller.error(new TypeError("the connection is gone"));
      else controller.enqueue(new Uint8Array(byteLength));
      sent = true;
    },
  });
}

Deno.test("larder warm: a NAR that never comes is named, and the others come", async () => {
  await using at = await stage(closure);
  for (const object of [shared, twin]) at.upstream.breakNar(status(404), object);

  const warm = await warmed(at.url, [app]);

  assert.equal(warm.failures.length, 1);
  assert.match(warm.failures[0]?.name ?? "", /-(shared|twin)-1$/);
  assert.equal(warm.isComplete(app.storePathHash), false);
  assert.ok(libs.every(({ storePathHash }) => warm.isComplete(storePathHash)));
  assert.equal(warm.fetched.paths, closure.length - 2);
  assert.equal(warm.progress.pathsDone, closure.length);
});

Deno.test("larder warm: a server that goes away ends it, and its progress is known", async () => {
  await using at = await stage(closure);
  using client = new ServerClient({ server: { kind: "http", url: at.url }, token: undefined });
  let asked = 0;
  const request = (method: string, path: string) => {
    if (++asked <= 6) return client.request(method, path);
    throw new Unreachable("Cannot reach it");
  };
  const warm = new WarmClosure({ client: { request }, retryDelaysMs: [0] });
  const { storePathHash, baseName: name } = app;

  await assert.rejects(warm.run([{ storePathHash, name }]), Unreachable);

  assert.equal(warm.progress.pathsKnown, closure.length);
  assert.ok(warm.fetched.paths < 6);
  assert.ok(asked < 6 + 2 * 8 + 1, "each of those under way tries once more");
});

Deno.test(`larder warm: over ${WARM_PATHS_MAX} paths it gives up and says so`, async () => {
  const names = Array.from({ length: 30_000 }, (_, index) => String(index).padStart(30, "0"));
  let asked = 0;
  const request = async (_: string, path: string) => {
    if (!path.endsWith(".narinfo")) return new Response("x");
    const prefix = String(++asked).padStart(2, "0");
    return answered([
      `StorePath: /nix/store/${path.slice(1, 33)}-x`,
      "URL: nar/x.nar",
      "Compression: none",
      `NarHash: sha256:${"0".repeat(52)}`,
      "NarSize: 1",
      `References: ${names.map((name) => `${prefix}${name}-x`).join(" ")}`,
      "",
    ].join("\n"));
  };
  const warm = new WarmClosure({ client: { request }, retryDelaysMs: [] });

  await assert.rejects(
    warm.run([{ storePathHash: app.storePathHash, name: app.baseName }]),
    /Cannot fetch closure: over 100000 paths/,
  );
});

Deno.test("larder warm --pin: a closure that the server does not keep is named", async () => {
  let looks = 0;
  const pinOf = (missing: number) => ({
    root: app.storePathHash,
    name: "app-1.0",
    stored: 1,
    missing,
    bytes: 1,
    pinned_at: "2026-01-02T03:04:05.000Z",
  });
  const clientOf = (...missing: readonly number[]) => ({
    request: async (_method: string, path: string) =>
      path === "/stats"
        ? answered("{}")
        : answered(JSON.stringify([pinOf(missing[Math.min(looks++, missing.length - 1)] ?? 0)])),
  });
  const target = { given: "./result", storePathHash: app.storePathHash };

  assert.deepEqual(await notKept(clientOf(2), [target], 0), [
    { name: "./result", reason: "2 of its paths are not kept" },
  ]);
  looks = 0;
  assert.deepEqual(await notKept(clientOf(1, 0), [target], 10_000), [], "the last is verified");
  assert.equal(looks, 2);
});

Deno.test("larder warm --pin: it waits for what the server still verifies", async () => {
  using time = new PlayedTime();
  const pin = { root: app.storePathHash, name: "app-1.0", stored: 1, bytes: 1 };
  const server = { missing: 3, files: 3 };
  const client = {
    request: async (_method: string, path: string) =>
      answered(JSON.stringify(
        path === "/stats"
          ? { verification_backlog: { files: server.files } }
          : [{ ...pin, missing: server.missing, pinned_at: "2026-01-02T03:04:05.000Z" }],
      )),
  };
  const target = { given: "./result", storePathHash: app.storePathHash };
  assert.deepEqual(await notKept(client, [target], 0), [
    {
      name: "./result",
      reason: "3 of its paths are not kept: 3 NAR files still wait for verification",
    },
  ]);
  let result: unknown;
  const waiting = notKept(client, [target], 30_000).then((short) => result = short);
  for (const missing of [2, 1]) {
    await time.advance(120_000);
    Object.assign(server, { missing, files: missing });
    assert.equal(result, undefined, "longer than it waits for what is not verified");
  }
  await time.advance(60_000);
  Object.assign(server, { missing: 0, files: 0 });
  await time.advance(1_000);
  await waiting;
  assert.deepEqual(result, []);
});

function answered(text: string): Response {
  // A stream of bytes, as that of a connection.
  return new Response(new Blob([text]).stream());
}
