import assert from "node:assert/strict";
import { sha256FromDigest } from "../../../src/nix/hash.ts";
import { narName } from "../../../src/nix/nar_name.ts";
import { newStoredName } from "../../../src/nix/stored_name.ts";
import { openS3 } from "../../../src/storage/s3/s3_access.ts";
import { S3Marks } from "../../../src/storage/s3/s3_marks.ts";
import { S3NarStore } from "../../../src/storage/s3/s3_nar_store.ts";
import { endlessBody } from "../../support/endless_body.ts";

const PIECE = new Uint8Array(64 * 1024).fill(97);

/** Answers that may be in the sockets when larder gives one up, besides the 8 MiB of each try. */
const SENT_MAX = 64 << 20;

/** An S3 store whose every answer the test writes. */
function hostileS3(answer: (request: Request) => Response) {
  const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
  const server = Deno.serve(options, answer);
  const s3 = openS3({
    bucket: "cache",
    endpoint: `http://127.0.0.1:${server.addr.port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "key", secretAccessKey: "secret" },
    forcePathStyle: true,
  });
  return {
    s3,
    async [Symbol.asyncDispose]() {
      s3.client.destroy();
      await server.shutdown();
    },
  };
}

function endless(start: string, sent: (bytes: number) => void): ReadableStream<Uint8Array> {
  return endlessBody((at) => {
    if (at === 0) return new TextEncoder().encode(start);
    sent(PIECE.length);
    return PIECE;
  });
}

for (
  const [what, start, status] of [
    ["a list", "<ListBucketResult><Name>", 200],
    ["an error", "<Error><Code>", 400],
  ] as const
) {
  Deno.test(`hostile S3: ${what} without an end is given up`, async () => {
    let sentBytes = 0;
    const body = () => endless(start, (bytes) => void (sentBytes += bytes));
    await using store = hostileS3(() => new Response(body(), { status }));
    const list = Array.fromAsync(new S3NarStore(store.s3).list(""));
    await assert.rejects(list, /Cannot list NAR files: the answer is over 8\.0 MiB/);
    assert.ok(sentBytes < SENT_MAX, `${sentBytes} bytes`);
  });
}

Deno.test("hostile S3: a mark without an end is given up", async () => {
  let sentBytes = 0;
  const body = () => endless("{", (bytes) => void (sentBytes += bytes));
  await using store = hostileS3(() => new Response(body()));
  await assert.rejects(new S3Marks(store.s3).read(), /the answer is over 8\.0 MiB/);
  assert.ok(sentBytes < SENT_MAX, `${sentBytes} bytes`);
});

Deno.test("hostile S3: a list of ever more pages ends", async () => {
  let requests = 0;
  const page = () =>
    `<ListBucketResult><IsTruncated>true</IsTruncated>
    <NextContinuationToken>token-${++requests}</NextContinuationToken></ListBucketResult>`;
  await using store = hostileS3(() => new Response(page()));
  const list = Array.fromAsync(new S3NarStore(store.s3, 20).list(""));
  await assert.rejects(list, /Cannot list NAR files: its list has no end/);
  assert.equal(requests, 21);
});

Deno.test("hostile S3: a list whose entities unpack to gigabytes takes none", async () => {
  const entities = Array.from({ length: 10 }, (_, at) => {
    const value = at === 0 ? "a".repeat(10) : `&a${at - 1};`.repeat(10);
    return `<!ENTITY a${at} "${value}">`;
  });
  const xml = `<?xml version="1.0"?><!DOCTYPE x [${entities.join("")}]>
    <ListBucketResult><Contents><Key>nar/&a9;</Key><Size>1</Size></Contents></ListBucketResult>`;
  await using store = hostileS3(() => new Response(xml));
  assert.deepEqual(await Array.fromAsync(new S3NarStore(store.s3).list("")), []);
});

Deno.test("S3: the removal of an object that another member removed meanwhile is no failure", async () => {
  const at = newStoredName(narName(sha256FromDigest(new Uint8Array(32).fill(7)), "none"));
  const body = (code: string) => `<?xml version="1.0"?><Error><Code>${code}</Code></Error>`;
  let code = "NoSuchKey";
  await using store = hostileS3(({ method }) =>
    method === "HEAD"
      ? new Response(null, { headers: { "content-length": "5", etag: '"a"' } })
      : new Response(body(code), { status: 404 })
  );
  const nars = new S3NarStore(store.s3);
  assert.equal(await nars.remove(at), false);
  code = "NoSuchBucket";
  await assert.rejects(nars.remove(at), /Cannot remove NAR file: .* 404 \(NoSuchBucket\)/);
});

Deno.test("S3: where no upload was ever begun a removal finds no parts, and is no failure", async () => {
  const at = newStoredName(narName(sha256FromDigest(new Uint8Array(32).fill(7)), "none"));
  const body = `<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>`;
  await using store = hostileS3(() => new Response(body, { status: 404 }));
  assert.equal(await new S3NarStore(store.s3).remove(at), false);
});
