import assert from "node:assert/strict";
import type { S3Place } from "../../src/storage/s3/s3_access.ts";
import { startLarder } from "../support/larder_process.ts";
import { testUnless } from "../support/program.ts";
import { S3_KEYS, S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

const UNUSABLE: Readonly<Record<string, [change: Partial<S3Place>, says: RegExp]>> = {
  "a bucket that is not there": [
    { bucket: "no-bucket" },
    /Cannot use S3 bucket no-bucket: .*NoSuchBucket.*; make the bucket, or give another with/,
  ],
  "an unknown key": [
    { credentials: { ...S3_KEYS, accessKeyId: "nobody" } },
    /Cannot use S3 bucket .*; give a key of that store with --cache-storage-s3-access-key-id/,
  ],
  "a wrong secret": [
    { credentials: { ...S3_KEYS, secretAccessKey: "wrong-secret" } },
    /SignatureDoesNotMatch.*; give the key's secret with --cache-storage-s3-secret-access-key/,
  ],
};

for (const [name, [change, says]] of Object.entries(UNUSABLE)) {
  testUnless(S3_UNAVAILABLE, `S3: ${name} ends the start, with what to do`, async () => {
    const flags = s3Flags({ ...newBucket(), ...change });
    await assert.rejects(startLarder(flags), says);
  });
}

function newBucket(): S3Place {
  if (server === undefined) throw new Error("Cannot make a bucket: there is no server");
  return server.bucket();
}
