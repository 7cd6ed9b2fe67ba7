import assert from "node:assert/strict";
import { PHASE_LIMITS_MS } from "../../src/http/server/connection.ts";
import { eventually } from "../support/eventually.ts";
import { scrape } from "../support/scrape.ts";
import { RawConnection, requestText } from "../support/raw_http.ts";
import { makeStoreObject } from "../support/store_object.ts";
import type { TestCache } from "../support/test_cache.ts";
import { AS_WRITER, push, pushOf, said, uploadCache } from "../support/uploading.ts";

const HOUR_MS = 3_600_000;
const thing = makeStoreObject({ name: "thing-1.0", size: 20_000 });

Deno.test("upload limits: a NAR without its narinfo counts, and goes after an hour", async () => {
  let nowMs = Date.now();
  await using cache = await uploadCache({ nowMs: () => nowMs, limitBytes: 1_000_000 });
  const { narPath, narinfoPath, narinfo, file } = await pushOf(thing);
  await (await cache.put(narPath, file.bytes, AS_WRITER)).text();
  assert.equal(cache.space.budget.usedBytes, file.bytes.length);

  nowMs += HOUR_MS - 1;
  await cache.expireUploads();
  assert.equal((await cache.head(narPath)).status, 200);
  nowMs += 1;
  await cache.expireUploads();
  assert.deepEqual([(await cache.head(narPath)).status, cache.bytesOnDisk()], [404, 0]);
  await eventually("it does not count", () => cache.space.budget.usedBytes === 0);
  const late = await cache.put(narinfoPath, narinfo, AS_WRITER);
  assert.equal((await said(late))[0], 422);
});

Deno.test("upload limits: a NAR whose narinfo came stays after the hour", async () => {
  let nowMs = Date.now();
  await using cache = await uploadCache({ nowMs: () => nowMs });
  await push(cache, await pushOf(thing));
  nowMs += 2 * HOUR_MS;
  await cache.expireUploads();
  assert.equal((await cache.head((await pushOf(thing)).narPath)).status, 200);
});

Deno.test("upload limits: eviction makes room, and spares a NAR in its hour", async () => {
  const [old, staged, next] = await Promise.all(
    [1, 2, 3].map((seed) => pushOf(makeStoreObject({ name: "part", size: 100_000, seed }))),
  );
  assert.ok(old && staged && next);
  await using cache = await uploadCache({ limitBytes: 250_000 });
  // The staged one is the colder of the two.
  await (await cache.put(staged.narPath, staged.file.bytes, AS_WRITER)).text();
  await push(cache, old);
  assert.deepEqual(await push(cache, next), [201, 201]);
  assert.equal((await cache.head(old.narPath)).status, 404);
  assert.equal(
    (await said(await cache.put(staged.narinfoPath, staged.narinfo, AS_WRITER)))[0],
    201,
  );
});

Deno.test("upload limits: a NAR larger than the limit is 413 before it is sent", async () => {
  await using cache = await uploadCache({ limitBytes: 10_000 });
  await using server = cache.listen();
  const { narPath, file } = await pushOf(thing);
  await using connection = await RawConnection.open(server.port);
  // The client sends no byte of the body until it has the answer.
  await connection.send(headOf(narPath, file.bytes.length));
  const { status, reader } = await connection.answer();
  const line = new TextDecoder().decode(await reader.read(1_000));
  const expected = "expected at most 10000 bytes, the size limit (--cache-max-size)\n";
  assert.deepEqual([status, line], [413, expected]);
  await nothingLeft(cache);
});

Deno.test("upload limits: beside pins that leave no room it is 507, to come again", async () => {
  await using cache = await uploadCache({ limitBytes: 30_000 });
  await push(cache, await pushOf(thing));
  await (await cache.request("POST", `/pin/${thing.storePathHash}.narinfo`, AS_WRITER)).text();
  const one = await pushOf(makeStoreObject({ name: "more", size: 20_000, seed: 1 }));
  const answer = await cache.put(one.narPath, one.file.bytes, AS_WRITER);
  const line = "expected room below the size limit, and there is none now";
  assert.deepEqual(await said(answer), [507, line]);
  assert.equal(answer.headers.get("retry-after"), "5");
});

Deno.test("upload limits: room is made for bytes that came, not for announced ones", async () => {
  await using cache = await uploadCache({ limitBytes: 6_000_000 });
  const old = await pushOf(makeStoreObject({ name: "old", size: 3_000_000 }));
  await push(cache, old);
  await using server = cache.listen();
  await using connection = await RawConnection.open(server.port);
  await connection.send(headOf((await pushOf(thing)).narPath, 5_900_000));
  await connection.send(old.file.bytes.subarray(0, 10));
  await eventually("it has space", () => cache.space.budget.reservedBytes > 0);
  assert.equal(cache.space.budget.reservedBytes, 1 << 20);
  assert.equal((await cache.head(old.narPath)).status, 200);
});

Deno.test("upload limits: a NAR that pins leave no room for is 507 before it is sent", async () => {
  await using cache = await uploadCache({ limitBytes: 30_000 });
  await push(cache, await pushOf(thing));
  await (await cache.request("POST", `/pin/${thing.storePathHash}.narinfo`, AS_WRITER)).text();
  await using server = cache.listen();
  await using connection = await RawConnection.open(server.port);
  const { narPath } = await pushOf(makeStoreObject({ name: "more", size: 20_000, seed: 1 }));
  // The client sends no byte of the body until it has the answer.
  await connection.send(headOf(narPath, 20_000));
  assert.equal((await connection.answer()).status, 507);
});

Deno.test("upload limits: chunks that outgrow the limit are 413, and gone", async () => {
  await using cache = await uploadCache({ limitBytes: 3_000_000 });
  const one = await pushOf(makeStoreObject({ name: "large", size: 5_000_000 }));
  await using server = cache.listen();
  const body = new Blob([one.file.bytes]).stream();
  const url = `${server.url}${one.narPath}`;
  const answer = await fetch(url, { method: "PUT", headers: AS_WRITER, body });
  assert.equal((await said(answer))[0], 413);
  await nothingLeft(cache);
});

Deno.test("upload limits: a client that waits for 100 gets it, or the refusal", async () => {
  await using cache = await uploadCache({ limitBytes: 100_000 });
  const { narPath, file } = await pushOf(thing);
  await using server = cache.listen();
  const head = (length: number) =>
    requestText("PUT", narPath, {
      "Authorization": AS_WRITER.authorization,
      "Content-Length": String(length),
      "Expect": "100-continue",
    });
  await using taken = await RawConnection.open(server.port);
  await taken.send(head(file.bytes.length));
  const answering = taken.answer();
  await eventually("larder reads", () => cache.growingFiles().length === 1);
  await taken.send(file.bytes);
  const { status, interim } = await answering;
  assert.deepEqual([status, interim], [201, [100]]);

  await using refused = await RawConnection.open(server.port);
  await refused.send(head(200_000).replace(narPath, narPath.replace(/nar\/./, "nar/0")));
  const answer = await refused.answer();
  assert.deepEqual([answer.status, answer.interim], [413, []]);
});

Deno.test("upload limits: a NAR larger than the free disk is 507 before it is sent", async () => {
  await using cache = await uploadCache();
  await using server = cache.listen();
  const { narPath } = await pushOf(thing);
  await using connection = await RawConnection.open(server.port);
  const headers = { "Authorization": AS_WRITER.authorization, "Expect": "100-continue" };
  const petabyte = String(10 ** 15 - 1);
  await connection.send(requestText("PUT", narPath, { ...headers, "Content-Length": petabyte }));
  const { status, interim, reader } = await connection.answer();
  assert.deepEqual([status, interim], [507, []]);
  const line = new TextDecoder().decode(await reader.read(1_000));
  assert.match(line, /^expected 9{15} free bytes on the disk, and \d+ are free\n$/);
  await nothingLeft(cache);
});

Deno.test("upload limits: a client that leaves halfway leaves nothing", async () => {
  await using cache = await uploadCache();
  await using server = cache.listen();
  const { narPath, file } = await pushOf(thing);
  {
    await using connection = await RawConnection.open(server.port);
    await connection.send(headOf(narPath, file.bytes.length));
    await connection.send(file.bytes.subarray(0, 10_000));
    await eventually("it comes in", () => cache.growingFiles().length === 1);
  }
  await nothingLeft(cache);
  assert.equal(cache.logged("error").length, 0);
});

Deno.test("upload limits: a client that stops is 408, and leaves nothing", async () => {
  await using cache = await uploadCache();
  const limitsMs = { ...PHASE_LIMITS_MS, body: 100, lingering: 100 };
  await using server = cache.listen({ sweepEveryMs: 20, limitsMs });
  const { narPath, file } = await pushOf(thing);
  await using connection = await RawConnection.open(server.port);
  await connection.send(headOf(narPath, file.bytes.length));
  await connection.send(file.bytes.subarray(0, 10_000));
  assert.equal((await connection.answer()).status, 408);
  await nothingLeft(cache);
  const statuses = () =>
    cache.log.filter(({ msg, method }) => msg === "upload refused" || method === "PUT")
      .map(({ msg, status }) => [msg, status]);
  await eventually("it is logged", () => statuses().length === 2);
  assert.deepEqual(statuses(), [["upload refused", 408], ["request", 408]]);
  const counted = (await scrape(cache)).nonZero("http_server_requests_total");
  const puts = Object.keys(counted).filter((labels) => labels.includes('"PUT"'));
  assert.deepEqual(puts.map((labels) => /"408"/.test(labels)), [true], String(puts));
});

Deno.test("upload limits: two push the same at once, and one file stays", async () => {
  await using cache = await uploadCache();
  const one = await pushOf(makeStoreObject({ name: "shared", size: 2_000_000 }));
  const statuses = await Promise.all([push(cache, one), push(cache, one), push(cache, one)]);
  for (const status of statuses.flat()) assert.ok(status === 200 || status === 201);
  assert.equal((await cache.narNames()).length, 1);
  assert.equal(cache.bytesOnDisk(), one.file.bytes.length);
  assert.equal((await cache.metadata.stock()).keptBytes, one.file.bytes.length);
});

function headOf(path: string, length: number): string {
  return requestText("PUT", path, {
    "Authorization": AS_WRITER.authorization,
    "Content-Length": String(length),
  });
}

async function nothingLeft(cache: TestCache): Promise<void> {
  await eventually("nothing is left", () => {
    return cache.bytesOnDisk() === 0 && cache.space.budget.reservedBytes === 0;
  });
  assert.deepEqual(await cache.narNames(), []);
}
