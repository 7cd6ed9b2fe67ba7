import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import { eventually } from "../support/eventually.ts";
import { type LarderFlags, type LarderProcess, startLarder } from "../support/larder_process.ts";
import { RawConnection, rawRequest, requestText } from "../support/raw_http.ts";
import { type Keeping, record, type Sight } from "../support/reliability_record.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { silenceMembers } from "../support/silenced_members.ts";
import { filesBelow, narFilesIn } from "../support/storage_look.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { AS_WRITER, type Push, pushOf, WRITE_TOKEN } from "../support/uploading.ts";

const FLAGS: LarderFlags = {
  "cache-upstream-url": "http://127.0.0.1:9",
  "cache-allow-put-verb": "true",
  "cache-put-token": WRITE_TOKEN.secret,
};
/** A shell in which no file grows beyond 4 MiB: writing more fails, as on a full disk. */
const FULL_DISK = ["sh", "-c", `trap "" XFSZ; ulimit -f 8192; exec "$0" "$@"`];

const small = await pushOf(makeStoreObject({ name: "small", size: 600_000 }));
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

/** A test whose outcome is a row of the table of faults. */
function faultTest(
  fault: string,
  saw: Sight,
  kept: Keeping,
  run: (is: (saw: Sight, kept: Keeping) => void) => Promise<void>,
): void {
  Deno.test(`reliability: ${fault}`, async () => {
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
