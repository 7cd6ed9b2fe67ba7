import assert from "node:assert/strict";
import { narName } from "../../../src/nix/nar_name.ts";
import { sha256FromDigest } from "../../../src/nix/hash.ts";
import { newStoredName } from "../../../src/nix/stored_name.ts";
import { openS3 } from "../../../src/storage/s3/s3_access.ts";
import { S3NarStore } from "../../../src/storage/s3/s3_nar_store.ts";

const HOUR_MS = 3_600_000;

Deno.test("s3: a presigned URL begins by the store's clock, not by this machine's", async () => {
  const s3 = openS3({
    bucket: "nix-cache",
    endpoint: "http://127.0.0.1:9",
    region: "us-east-1",
    credentials: { accessKeyId: "id", secretAccessKey: "secret" },
    forcePathStyle: true,
  });
  await using store = new S3NarStore(s3);
  // As the client learns it from the answers of the store.
  s3.client.config.systemClockOffset = 2 * HOUR_MS;
  const at = newStoredName(narName(sha256FromDigest(new Uint8Array(32)), "xz"));
  const { searchParams } = await store.locate(at, 60_000);
  const text = searchParams.get("X-Amz-Date") ?? "";
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text) ?? [];
  const signedAtMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  const clockLeadMs = signedAtMs - Date.now();
  assert.ok(Math.abs(clockLeadMs - 2 * HOUR_MS) < 60_000, text);
});
