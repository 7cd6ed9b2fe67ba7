import assert from "node:assert/strict";
import {
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { narName } from "../../src/nix/nar_name.ts";
import { newStoredName } from "../../src/nix/stored_name.ts";
import { openS3, type S3Place } from "../../src/storage/s3/s3_access.ts";
import { S3Marks } from "../../src/storage/s3/s3_marks.ts";
import { S3NarStore } from "../../src/storage/s3/s3_nar_store.ts";
import { testUnless } from "../support/program.ts";
import { S3_UNAVAILABLE, S3Server } from "../support/s3_server.ts";
import { STAYS } from "../support/staying_client.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract } from "./contract.ts";
import { narStoreClauses, put } from "./nar_store_contract.ts";
import { storageMarksClauses } from "./storage_marks_contract.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

/** Several parts; the last is a short one. */
const LARGE_BYTES = 20_000_000;
const PART_BYTES = 5 * 1024 * 1024;

const at = newStoredName(narName(sha256FromDigest(new Uint8Array(32).fill(7)), "none"));

checkContract({
  name: "S3NarStore",
  unavailable: S3_UNAVAILABLE,
  open: async () => new S3NarStore(openS3(newBucket())),
}, narStoreClauses);

checkContract({
  name: "S3Marks",
  unavailable: S3_UNAVAILABLE,
  open: async () => {
    const s3 = openS3(newBucket());
    const nars = new S3NarStore(s3);
    const dispose = () => nars[Symbol.asyncDispose]();
    return { marks: new S3Marks(s3), nars, [Symbol.asyncDispose]: dispose };
  },
}, storageMarksClauses);

testUnless(
  S3_UNAVAILABLE,
  "S3NarStore: a file of several parts is read back as it was",
  async () => {
    await using store = new S3NarStore(openS3(newBucket()));
    using folder = tempFolder();
    const bytes = new Uint8Array(LARGE_BYTES).map((_, index) => index >> 8);
    Deno.writeFileSync(`${folder.path}/large`, bytes);

    const seal = await store.put(at, `${folder.path}/large`);

    const nar = await store.open(at, STAYS);
    assert.equal(nar?.fileSize, LARGE_BYTES);
    assert.equal(nar?.seal, seal);
    const [start, end] = [8_000_000, LARGE_BYTES - 1];
    const part = await new Response(nar?.read(start, end)).bytes();
    assert.ok(equal(part, bytes.subarray(start, end)), "the part's bytes");
    assert.ok(equal(await (await store.open(at, STAYS))?.bytes(), bytes), "all bytes");
  },
);

testUnless(S3_UNAVAILABLE, "S3NarStore: a file above 5 MiB goes in parts, no other", async () => {
  const s3 = openS3(newBucket());
  await using store = new S3NarStore(s3);
  using folder = tempFolder();
  const etags = [];
  for (const fileSize of [PART_BYTES, PART_BYTES + 1, LARGE_BYTES]) {
    Deno.writeFileSync(`${folder.path}/large`, new Uint8Array(fileSize));
    await store.put(at, `${folder.path}/large`);
    const { ETag } = await s3.client.send(
      new HeadObjectCommand({ Bucket: s3.bucket, Key: `nar/${at}` }),
    );
    etags.push(ETag?.replaceAll('"', "").replace(/^[0-9a-f]{32}/, ""));
  }
  // The store names the number of parts behind the hash.
  assert.deepEqual(etags, ["", "-2", "-4"]);
});

testUnless(
  S3_UNAVAILABLE,
  "S3NarStore: remove() also removes the parts of a put that died",
  async () => {
    const s3 = openS3(newBucket());
    await using store = new S3NarStore(s3);
    const names = { Bucket: s3.bucket, Key: `nar/${at}` };
    const { UploadId } = await s3.client.send(new CreateMultipartUploadCommand(names));
    const part = { ...names, UploadId, PartNumber: 1, Body: new Uint8Array(10) };
    await s3.client.send(new UploadPartCommand(part));

    assert.equal(await store.remove(at), false);

    const { Uploads = [] } = await s3.client.send(
      new ListMultipartUploadsCommand({ Bucket: s3.bucket }),
    );
    assert.deepEqual(Uploads, []);
  },
);

testUnless(S3_UNAVAILABLE, "S3NarStore: an object that is replaced is never read", async () => {
  const place = newBucket();
  await using store = new S3NarStore(openS3(place));
  const seal = await put(store, at, "abcdef");
  const nar = await store.open(at, STAYS);
  await put(store, at, "ABCDEF");

  await assert.rejects(async () => await nar?.bytes(), /Cannot read NAR file/);
  await using now = await store.open(at, STAYS);
  assert.notEqual(now?.seal, seal);
});

testUnless(S3_UNAVAILABLE, "S3NarStore: a failed lookup, removal or list is a throw", async () => {
  const place = newBucket();
  const credentials = { accessKeyId: "nobody", secretAccessKey: "nothing" };
  await using stranger = new S3NarStore(openS3({ ...place, credentials }));
  await assert.rejects(stranger.open(at, STAYS), /Cannot open NAR file/);
  await assert.rejects(stranger.remove(at), /Cannot open NAR file/);
  await assert.rejects(Array.fromAsync(stranger.list("")), /Cannot list NAR files/);
  await using lost = new S3NarStore(openS3({ ...place, bucket: "no-bucket" }));
  await assert.rejects(Array.fromAsync(lost.list("")), /Cannot list NAR files/);
});

function newBucket(): S3Place {
  if (server === undefined) throw new Error("Cannot make a bucket: there is no server");
  return server.bucket();
}

function equal(found: Uint8Array | undefined, expected: Uint8Array): boolean {
  return found !== undefined && found.length === expected.length &&
    found.every((byte, index) => byte === expected[index]);
}
