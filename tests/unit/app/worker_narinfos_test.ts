import assert from "node:assert/strict";
import { WorkerNarinfos } from "../../../src/app/workers/worker_narinfos.ts";
import { generateSecretKey, parsePublicKey } from "../../../src/nix/signature.ts";
import { signNarinfo } from "../../../src/nix/sign_narinfo.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import type { NarinfoFetcher, NarinfoWatch } from "../../../src/upstream/http/narinfo_fetcher.ts";
import type { NarinfoReading } from "../../../src/upstream/upstream.ts";
import { eventually } from "../../support/eventually.ts";
import { type FakeUpstream, fakeUpstream } from "../../support/fake_upstream.ts";
import { heldUntil, stallAfter } from "../../support/faults.ts";
import { makeStoreObject } from "../../support/store_object.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const { storePathHash } = object;
const PATH = `/${storePathHash}.narinfo`;
const stored = { objects: [object], stored: true } as const;
const secretKey = generateSecretKey("larder.test");

/** A Worker that is up, for this upstream. */
async function openWorker(upstream: FakeUpstream, requireSignature = true) {
  const settings = {
    url: upstream.url,
    authorization: "Basic s3cret",
    dialTimeoutMs: 5_000,
    headerTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
    userAgent: "larder-test",
  };
  const worker = new WorkerNarinfos({
    settings: [settings],
    caCertificates: [],
    trustedKeys: [parsePublicKey(upstream.publicKey)],
    ...{ requireSignature, secretKey },
    log: createLogger("error", { write() {} }),
  });
  let owned = 0;
  const own: NarinfoFetcher = {
    fetch: () =>
      Promise.resolve<NarinfoReading>({
        kind: "failed",
        reason: "status",
        detail: `own ${++owned}`,
      }),
  };
  const fetcher = worker.over(upstream.url, own);
  const askAlone = (watch: Partial<NarinfoWatch> = {}, headers = {}) =>
    fetcher.fetch({ storePathHash, headers, isFinal: false }, {
      signal: new AbortController().signal,
      answered() {},
      busy() {},
      ...watch,
    });
  const ask = (watch: Partial<NarinfoWatch> = {}, headers = {}) => {
    // It makes a crowd, and is no request.
    void askAlone({ signal: AbortSignal.abort() });
    return askAlone(watch, headers);
  };
  const isUp = async () => {
    const reading = await ask();
    return reading.kind !== "failed" || !reading.detail.startsWith("own ");
  };
  await eventually("the Worker is up", isUp);
  return { ask, askAlone, [Symbol.dispose]: () => worker[Symbol.dispose]() };
}

Deno.test("narinfo Worker: it verifies and signs as this thread does", async () => {
  await using upstream = await fakeUpstream(stored);
  using worker = await openWorker(upstream);
  const reading = await worker.ask();
  assert.ok(reading.kind === "found");
  assert.equal(reading.trusted, true);
  assert.deepEqual(reading.ownSignature, signNarinfo(secretKey, reading.narinfo));
});

Deno.test("narinfo Worker: it refuses an untrusted narinfo, and never signs one", async () => {
  await using upstream = await fakeUpstream(stored);
  await using unsigned = await fakeUpstream(stored);
  upstream.onRequest = async () => new Response(await unsigned.narinfoOf(object));
  {
    using worker = await openWorker(upstream);
    const reading = await worker.ask();
    assert.ok(reading.kind === "failed");
    assert.equal(reading.reason, "untrusted");
  }
  using worker = await openWorker(upstream, false);
  const reading = await worker.ask();
  assert.ok(reading.kind === "found");
  assert.deepEqual([reading.trusted, reading.ownSignature], [false, undefined]);
});

Deno.test("narinfo Worker: its requests have credentials and headers", async () => {
  await using upstream = await fakeUpstream(stored);
  using worker = await openWorker(upstream);
  await worker.ask({}, { traceparent: "00-trace" });
  const headers = upstream.matching(PATH).at(-1)?.headers;
  const names = ["authorization", "user-agent", "accept-encoding", "traceparent"];
  assert.deepEqual(
    names.map((name) => headers?.get(name)),
    ["Basic s3cret", "larder-test", "identity", "00-trace"],
  );
});

Deno.test("narinfo Worker: it tells of each refusal for load, and tries again", async () => {
  await using upstream = await fakeUpstream(stored);
  using worker = await openWorker(upstream);
  const told: (number | string)[] = [];
  let refusals = 2;
  upstream.onRequest = () => refusals-- > 0 ? new Response("", { status: 503 }) : undefined;
  const reading = await worker.ask({
    busy: () => void told.push("busy"),
    answered: (status) => void told.push(status),
  });
  assert.equal(reading.kind, "found");
  assert.deepEqual(told, ["busy", "busy", 200]);
});

Deno.test("narinfo Worker: an end settles at once, and ends the request", async () => {
  await using upstream = await fakeUpstream(stored);
  using worker = await openWorker(upstream);
  const never = Promise.withResolvers<void>();
  upstream.breakNarinfo(heldUntil(never.promise));
  const abort = new AbortController();
  const count = upstream.count(PATH);
  const reading = worker.ask({ signal: abort.signal });
  const request = await upstream.requested(PATH, count + 1);
  abort.abort(new Error("nobody waits"));
  assert.deepEqual(await reading, {
    kind: "failed",
    reason: "unreachable",
    detail: "nobody waits",
  });
  await eventually("the connection is closed", () => upstream.openConnections === 0);
  never.resolve();
  await request.finished;
});

Deno.test("narinfo Worker: the status of a body that never ends is known", async () => {
  await using upstream = await fakeUpstream(stored);
  using worker = await openWorker(upstream);
  upstream.breakNarinfo(stallAfter(20));
  const abort = new AbortController();
  const statuses: number[] = [];
  const watch = { signal: abort.signal, answered: (status: number) => void statuses.push(status) };
  const count = upstream.count(PATH);
  const reading = worker.ask(watch);
  const request = await upstream.requested(PATH, count + 1);
  await eventually("the body has begun", () => request.sentBytes > 0);
  await new Promise((resolve) => setTimeout(resolve, 200));
  abort.abort();
  assert.equal((await reading).kind, "failed");
  assert.deepEqual(statuses, [200]);
});

Deno.test("narinfo Worker: a lone narinfo stays on the thread that answers", async () => {
  await using upstream = await fakeUpstream(stored);
  using worker = await openWorker(upstream);
  assert.equal((await worker.ask()).kind, "found");
  await eventually("the crowd is over", async () => (await worker.askAlone()).kind === "failed");
});
