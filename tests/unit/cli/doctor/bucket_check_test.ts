import assert from "node:assert/strict";
import type { StorePlaces } from "../../../../src/app/back_ends/back_ends.ts";
import { checkBucketOf } from "../../../../src/cli/doctor/back_end_checks.ts";

const EMPTY = '<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>' +
  "</ListBucketResult>";
const DENIED = '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>no</Message></Error>';

/** A bucket at a server that gives one answer, and the methods of its requests. */
function bucketWith(status: number, xml: string) {
  const methods: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ method }) => {
    methods.push(method);
    return new Response(xml, { status, headers: { "content-type": "application/xml" } });
  });
  const places: StorePlaces = {
    database: { kind: "sqlite", path: "/none" },
    nars: {
      kind: "s3",
      s3: {
        bucket: "nars",
        endpoint: `http://127.0.0.1:${server.addr.port}`,
        region: "us-east-1",
        credentials: { accessKeyId: "key", secretAccessKey: "a-secret" },
        forcePathStyle: true,
      },
    },
  };
  return { places, methods, [Symbol.asyncDispose]: () => server.shutdown() };
}

Deno.test("doctor: a bucket is listed, and nothing is written into it", async () => {
  await using bucket = bucketWith(200, EMPTY);
  const [finding] = await checkBucketOf(bucket.places);
  assert.deepEqual([finding?.mark, bucket.methods], ["ok", ["GET"]], finding?.fact);
});

Deno.test("doctor: a bucket that refuses the key failed, without the secret", async () => {
  await using bucket = bucketWith(403, DENIED);
  const [finding] = await checkBucketOf(bucket.places);
  assert.equal(finding?.mark, "failed");
  assert.ok(!JSON.stringify(finding).includes("a-secret"));
});

Deno.test("doctor: a local storage has no line on a bucket", async () => {
  const places = {
    database: { kind: "sqlite", path: "/none" },
    nars: { kind: "local", folder: "/none" },
  } as const;
  assert.deepEqual(await checkBucketOf(places), []);
});
