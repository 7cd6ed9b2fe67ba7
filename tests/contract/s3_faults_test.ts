import assert from "node:assert/strict";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { narName } from "../../src/nix/nar_name.ts";
import { newStoredName } from "../../src/nix/stored_name.ts";
import { openS3 } from "../../src/storage/s3/s3_access.ts";
import { S3NarStore } from "../../src/storage/s3/s3_nar_store.ts";
import { testUnless } from "../support/program.ts";
import { type S3Fault, S3FaultProxy, type S3Request } from "../support/s3_fault_proxy.ts";
import { S3_UNAVAILABLE, S3Server } from "../support/s3_server.ts";
import { STAYS } from "../support/staying_client.ts";
import { tempFolder } from "../support/temp_folder.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

const at = newStoredName(narName(sha256FromDigest(new Uint8Array(32).fill(7)), "none"));

/** Two parts. */
const BYTES = new Uint8Array(9_000_000).map((_, index) => index >> 8);

const SLOW_DOWN: S3Fault = { status: 503, code: "SlowDown" };

const isHead = ({ method }: S3Request) => method === "HEAD";
const isGet = ({ method, path }: S3Request) => method === "GET" && !path.includes("uploads");
const isPart = ({ path }: S3Request) => path.includes("partNumber=");
const isBegin = ({ method, path }: S3Request) => method === "POST" && path.includes("uploads");
const isEnd = ({ method, path }: S3Request) => method === "POST" && !path.includes("uploads=");

type Rule = (request: S3Request) => S3Fault | undefined;

/** The fault for the first `times` requests of a sort. */
function first(times: number, is: (request: S3Request) => boolean, fault: S3Fault): Rule {
  let left = times;
  return (request) => is(request) && left-- > 0 ? fault : undefined;
}

/** Faults in spite of which the file is put, or read, as it is. */
const OVERCOME: Readonly<Record<string, { readonly put?: Rule; readonly read?: Rule }>> = {
  "503 SlowDown twice for a part": { put: first(2, isPart, SLOW_DOWN) },
  "503 SlowDown twice for the last word": { put: first(2, isEnd, SLOW_DOWN) },
  "a lost answer to a part": { put: first(1, isPart, "lose the answer") },
  "a lost answer to the begin": { put: first(1, isBegin, "lose the answer") },
  "a lost answer to the last word": { put: first(1, isEnd, "lose the answer") },
  "503 SlowDown twice for HEAD": { read: first(2, isHead, SLOW_DOWN) },
  "503 SlowDown twice for GET": { read: first(2, isGet, SLOW_DOWN) },
  "a lost answer to GET": { read: first(1, isGet, "lose the answer") },
  "a body cut in its middle": { read: first(1, isGet, { cutAfter: 4_000_000 }) },
  "a body cut three times": { read: first(3, isGet, { cutAfter: 1_000_000 }) },
};

for (const [name, { put, read }] of Object.entries(OVERCOME)) {
  testUnless(S3_UNAVAILABLE, `S3 fault: ${name} is overcome`, async () => {
    await using scene = await openScene();
    if (put !== undefined) scene.proxy.fault = put;
    await scene.put();
    scene.proxy.fault = read ?? (() => undefined);
    assert.ok(await scene.isWhole(), "the bytes");
    assert.deepEqual(scene.leftParts(), []);
  });
}

/** Answers that are never right: the read fails, and is not short. */
const SEEN: Readonly<Record<string, Rule>> = {
  "a body that always ends early": (request) => isGet(request) ? { cutAfter: 0 } : undefined,
  "a body one byte short": (request) =>
    isGet(request) ? { body: (bytes) => bytes.subarray(1) } : undefined,
  "a body one byte long": (request) =>
    isGet(request) ? { body: (bytes) => new Uint8Array(bytes.length + 1) } : undefined,
  "a removal between HEAD and GET": (request) =>
    isGet(request) ? { status: 404, code: "NoSuchKey" } : undefined,
};

for (const [name, rule] of Object.entries(SEEN)) {
  testUnless(S3_UNAVAILABLE, `S3 fault: ${name} is a read that fails`, async () => {
    await using scene = await openScene();
    await scene.put();
    scene.proxy.fault = rule;
    await assert.rejects(scene.isWhole(), /Cannot read NAR file/);
  });
}

testUnless(
  S3_UNAVAILABLE,
  "S3 fault: a put that fails leaves nothing once it is removed",
  async () => {
    await using scene = await openScene();
    scene.proxy.fault = (request) =>
      isPart(request) ? { status: 403, code: "AccessDenied" } : undefined;
    await assert.rejects(scene.put(), /Cannot write NAR file: .*AccessDenied/);
    assert.equal(await scene.store.remove(at), false);
    assert.deepEqual(scene.leftParts(), []);
  },
);

async function openScene() {
  if (server === undefined) throw new Error("Cannot open: there is no server");
  await using opened = new AsyncDisposableStack();
  const proxy = opened.use(new S3FaultProxy(server.port));
  const place = server.bucket(proxy.port);
  const store = opened.use(new S3NarStore(openS3(place)));
  const folder = opened.use(tempFolder());
  const resources = opened.move();
  return {
    proxy,
    store,
    async put() {
      Deno.writeFileSync(`${folder.path}/file`, BYTES);
      await store.put(at, `${folder.path}/file`);
    },
    async isWhole() {
      const nar = await store.open(at, STAYS);
      const bytes = await new Response(nar?.read(0, nar.fileSize)).bytes();
      return bytes.length === BYTES.length && bytes.every((byte, index) => byte === BYTES[index]);
    },
    leftParts: () => server.unfinishedIn(place),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
