import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { Bytes } from "../../src/base/bytes.ts";
import { eventually } from "../support/eventually.ts";
import { type LarderFlags, type LarderProcess, startLarder } from "../support/larder_process.ts";
import { testWhere } from "../support/program.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { type Keeping, record, type Sight } from "../support/reliability_record.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { silenceMembers } from "../support/silenced_members.ts";
import { ROWS_ELSEWHERE } from "../support/shared_servers.ts";
import { filesBelow, narFilesIn } from "../support/storage_look.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { assertInTime } from "../support/timed_test.ts";
import { AS_WRITER, type Push, pushOf, WRITE_TOKEN } from "../support/uploading.ts";

const FLAGS: LarderFlags = {
  "cache-upstream-url": "http://127.0.0.1:9",
  "cache-allow-put-verb": "true",
  "cache-put-token": WRITE_TOKEN.secret,
};
/** A shell in which no file grows beyond 4 MiB: writing more fails, as on a full disk. */
const FULL_DISK = ["sh", "-c", `trap "" XFSZ; ulimit -f 8192; exec "$0" "$@"`];
/** The client gets its answer soon after the limit, and one that only slows down gets none. */
const STOPPED_MS = { min: 29_000, max: 40_000 };
const LOCKED_MS = 2_000;

const small = await pushOf(makeStoreObject({ name: "small", size: 600_000 }));
const other = await pushOf(makeStoreObject({ name: "other", size: 600_000, seed: 1 }));
const large = await pushOf(makeStoreObject({ name: "large", size: 12_000_000, seed: 2 }));

faultTest("the disk is full while a NAR is uploaded", "full", "nothing", async (fault) => {
  await using larder = await startLarder(FLAGS, {}, FULL_DISK);
  await using connection = await begun(larder, large);
  await connection.send(large.file.bytes);
  const { status, headers } = await connection.answer();
  assert.deepEqual([status, headers.get("connection")], [507, "close"]);
  await isGone(larder);
  await isPushed(larder, small);
  fault("full", "nothing");
});

faultTest("pins fill the size limit while a NAR is uploaded", "later", "nothing", async (fault) => {
  await using larder = await startLarder({ ...FLAGS, "cache-max-size": "1M" });
  await isPushed(larder, small);
  const pin = `/pin/${small.object.storePathHash}.narinfo`;
  assert.equal((await rawRequest(larder.port, requestText("POST", pin))).status, 200);
  assert.equal(await put(larder, other.narPath, other.file.bytes), 507);
  assert.equal((await rawRequest(larder.port, requestText("DELETE", pin))).status, 200);
  await isPushed(larder, other);
  fault("later", "nothing");
});

faultTest(
  "larder is killed (`kill -9`) halfway through an upload",
  "cut",
  "nothing",
  async (fault) => {
    using storage = tempFolder();
    const flags = { ...FLAGS, "cache-storage-local": storage.path };
    {
      await using larder = await startLarder(flags);
      await using connection = await half(larder, small);
      larder.kill("SIGKILL");
      await larder.ended;
      assert.equal((await connection.answer()).status, 0);
    }
    silenceMembers(storage.path);
    await using larder = await startLarder(flags);
    await isGone(larder);
    await isPushed(larder, small);
    fault("cut", "nothing");
  },
);

faultTest(
  "larder is killed (`kill -9`) between a NAR and its narinfo",
  "cut",
  "staged",
  async (fault) => {
    using storage = tempFolder();
    const flags = { ...FLAGS, "cache-storage-local": storage.path };
    {
      await using larder = await startLarder(flags);
      assert.equal(await put(larder, small.narPath, small.file.bytes), 201);
      larder.kill("SIGKILL");
      await larder.ended;
    }
    await using larder = await startLarder(flags);
    assert.equal((await rawRequest(larder.port, requestText("HEAD", small.narPath))).status, 200);
    assert.equal(await put(larder, small.narinfoPath, small.narinfo), 201);
    await isServed(larder, small);
    fault("cut", "staged");
  },
);

faultTest("two clients upload the same path at once", "stored", "nar", async (fault) => {
  await using larder = await startLarder(FLAGS);
  const pushes = [1, 2].map(async () => [
    await put(larder, large.narPath, large.file.bytes),
    await put(larder, large.narinfoPath, large.narinfo),
  ]);
  for (const status of (await Promise.all(pushes)).flat()) {
    assert.ok(status === 200 || status === 201);
  }
  assert.equal(narFilesIn(larder.storage).size, 1);
  await isServed(larder, large);
  fault("stored", "nar");
});

faultTest(
  "a client stops for a minute in the middle of an upload",
  "timeout",
  "nothing",
  async (fault) => {
    await using larder = await startLarder(FLAGS);
    // larder counts from the last byte that it gets, which is later.
    const startedAtMs = performance.now();
    await using connection = await half(larder, small);
    const { status, headers } = await connection.answer();
    assert.deepEqual([status, headers.get("connection")], [408, "close"]);
    const tookMs = performance.now() - startedAtMs;
    assert.ok(tookMs > STOPPED_MS.min, `it took ${tookMs} ms`);
    await isGone(larder);
    assertInTime(tookMs, STOPPED_MS.max);
    await isPushed(larder, small);
    fault("timeout", "nothing");
  },
);

faultTest("a client leaves in the middle of an upload", "left", "nothing", async (fault) => {
  await using larder = await startLarder(FLAGS);
  await (await half(larder, small))[Symbol.asyncDispose]();
  await isGone(larder);
  await isPushed(larder, small);
  fault("left", "nothing");
});

faultTest(
  "another process locks the database for two seconds during an upload",
  "stored",
  "nar",
  async (
    fault,
  ) => {
    await using larder = await startLarder(FLAGS);
    using locker = new DatabaseSync(`${larder.storage}/db.sqlite`, { timeout: 5_000 });
    locker.exec("BEGIN IMMEDIATE");
    const unlocked = Promise.withResolvers<void>();
    setTimeout(() => {
      locker.exec("COMMIT");
      unlocked.resolve();
    }, LOCKED_MS);
    assert.equal(await put(larder, small.narPath, small.file.bytes), 201);
    assert.equal(await put(larder, small.narinfoPath, small.narinfo), 201);
    await unlocked.promise;
    await isServed(larder, small);
    fault("stored", "nar");
  },
);

/** A test whose outcome is a row of the table of faults. */
function faultTest(
  fault: string,
  saw: Sight,
  kept: Keeping,
  run: (is: (saw: Sight, kept: Keeping) => void) => Promise<void>,
): void {
  // Only SQLite has a file that another process can lock.
  const excuse = fault.includes("locks the database") ? ROWS_ELSEWHERE : "";
  testWhere(excuse, `reliability: ${fault}`, async () => {
    await run((nowSaw, nowKept) => assert.deepEqual([nowSaw, nowKept], [saw, kept]));
    record({ area: "upload", fault, saw, kept });
  });
}

async function put(
  { port }: LarderProcess,
  path: string,
  body: Bytes | string,
): Promise<number> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: "PUT",
    headers: AS_WRITER,
    body: bytes,
  });
  await answer.text();
  return answer.status;
}

/** Sends the head of a NAR's upload, on a connection that may last. */
async function begun(larder: LarderProcess, { narPath, file: { bytes } }: Push) {
  const connection = await RawConnection.open(larder.port);
  const head = {
    "Connection": "keep-alive",
    "Content-Length": String(bytes.length),
    "Authorization": AS_WRITER.authorization,
  };
  await connection.send(requestText("PUT", narPath, head));
  return connection;
}

/** Sends half of a NAR, and resolves when larder writes it. */
async function half(larder: LarderProcess, push: Push) {
  const connection = await begun(larder, push);
  const { bytes } = push.file;
  await connection.send(bytes.subarray(0, bytes.length / 2));
  await eventually("it comes in", () => {
    return [...filesBelow(`${larder.storage}/tmp`).values()].some((size) => size > 0);
  });
  return connection;
}

/** Nothing of any upload is there. */
async function isGone({ storage }: LarderProcess): Promise<void> {
  await eventually("nothing is left", () => filesBelow(`${storage}/tmp`).size === 0);
  assert.equal(narFilesIn(storage).size, 0);
}

async function isPushed(larder: LarderProcess, one: Push): Promise<void> {
  assert.equal(await put(larder, one.narPath, one.file.bytes), 201);
  assert.equal(await put(larder, one.narinfoPath, one.narinfo), 201);
  await isServed(larder, one);
}

async function isServed({ port }: LarderProcess, { object }: Push): Promise<void> {
  const answer = await servedNar(port, await servedNarinfo(port, object.storePathHash));
  assert.equal(answer.status, 200);
}
