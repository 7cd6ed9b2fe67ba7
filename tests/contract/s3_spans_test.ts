import assert from "node:assert/strict";
import { openNars } from "../../src/app/back_ends/nar_back_end.ts";
import { tracedNars } from "../../src/app/stores.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { narName } from "../../src/nix/nar_name.ts";
import { newStoredName } from "../../src/nix/stored_name.ts";
import type { RequestSpan } from "../../src/telemetry/tracer.ts";
import { type RecordedSpan, RecordedSpans } from "../support/recorded_spans.ts";
import { testUnless } from "../support/program.ts";
import { S3_UNAVAILABLE, S3Server } from "../support/s3_server.ts";
import { STAYS } from "../support/staying_client.ts";
import { tempFolder } from "../support/temp_folder.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

const at = newStoredName(narName(sha256FromDigest(new Uint8Array(32).fill(7)), "none"));

/** Two parts. */
const LARGE_BYTES = 6_000_000;

/** A real bucket, whose operations are spans of one request. */
async function openTraced() {
  if (server === undefined) throw new Error(S3_UNAVAILABLE);
  const { tracer, ...spans } = new RecordedSpans();
  const place = server.bucket();
  const { nars: inner, locator, ...opened } = await openNars({ kind: "s3", s3: place }, tracer);
  const request = tracer.request("GET", "/nar/{name}", new Headers());
  assert.ok(request !== undefined);
  return {
    ...{ nars: tracedNars(inner, "s3", tracer), locator, place, request, spans: spans.list },
    /** Puts a file of so many bytes, without a trace. */
    async put(size: number): Promise<void> {
      using folder = tempFolder();
      Deno.writeFileSync(`${folder.path}/file`, new Uint8Array(size));
      await inner.put(at, `${folder.path}/file`);
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

function factsOf({ facts }: RecordedSpan, ...names: readonly string[]): readonly unknown[] {
  return names.map((name) => facts[name]);
}

/** The spans that ended, without the milliseconds in which a span ends. */
async function ended(request: RequestSpan, spans: readonly RecordedSpan[]): Promise<string[]> {
  await new Promise((resolve) => setTimeout(resolve, 0));
  request.end();
  return spans.map(({ name, error }) => error === undefined ? name : `${name} failed`).slice(0, -1);
}

testUnless(S3_UNAVAILABLE, "S3 spans: a read lasts until its body's end", async () => {
  await using traced = await openTraced();
  const { nars, request, spans, place } = traced;
  await traced.put(LARGE_BYTES);
  assert.equal(spans.length, 0, "nothing is traced without a request");
  const nar = await request.run(() => nars.open(at, STAYS));
  // As the server does: outside of the request.
  const reader = nar?.read(1_000, LARGE_BYTES).getReader();
  await reader?.read();
  assert.deepEqual(spans.map(({ name }) => name), ["S3/HeadObject", "open nar file"]);
  while (!(await reader?.read())?.done) { /* To the end. */ }
  assert.deepEqual(await ended(request, spans), [
    ...["S3/HeadObject", "open nar file", "S3/GetObject"],
  ]);
  const [head, open, get, server] = spans;
  assert.ok(head && open && get && server);
  assert.equal(get.kind, "client");
  assert.deepEqual(get.facts, {
    "rpc.system": "aws-api",
    "rpc.service": "S3",
    "rpc.method": "GetObject",
    "aws.s3.bucket": place.bucket,
    "aws.s3.key": `nar/${at}`,
    "http.response.status_code": 206,
    "http.response.body.size": LARGE_BYTES - 1_000,
    ...("aws.request_id" in get.facts ? { "aws.request_id": get.facts["aws.request_id"] } : {}),
  });
  const parentOf = ({ span }: RecordedSpan) => span.parentSpanContext?.spanId;
  assert.equal(parentOf(head), open.span.spanContext().spanId);
  assert.equal(parentOf(get), server.span.spanContext().spanId);
});

testUnless(S3_UNAVAILABLE, "S3 spans: a reader that leaves ends the span", async () => {
  await using traced = await openTraced();
  const { nars, request, spans } = traced;
  await traced.put(LARGE_BYTES);
  const nar = await request.run(() => nars.open(at, STAYS));
  const reader = nar?.read(0, LARGE_BYTES).getReader();
  const { value } = await reader?.read() ?? {};
  await reader?.cancel();
  assert.equal((await ended(request, spans)).at(-1), "S3/GetObject");
  const [bytes] = factsOf(spans.at(-2)!, "http.response.body.size");
  assert.ok(Number(bytes) >= (value?.length ?? Infinity) && Number(bytes) < LARGE_BYTES);
});

testUnless(S3_UNAVAILABLE, "S3 spans: parts, lists, removals and presigned URLs", async () => {
  await using traced = await openTraced();
  const { nars, locator, request, spans } = traced;
  using folder = tempFolder();
  Deno.writeFileSync(`${folder.path}/file`, new Uint8Array(LARGE_BYTES));
  await request.run(async () => {
    await nars.put(at, `${folder.path}/file`);
    assert.equal((await Array.fromAsync(nars.list(""))).length, 1);
    await locator?.locate(at, 1_000);
    assert.ok(await nars.remove(at));
  });
  assert.deepEqual(await ended(request, spans), [
    ...["S3/CreateMultipartUpload", "S3/UploadPart", "S3/UploadPart", "S3/CompleteMultipartUpload"],
    ...["publish nar file", "S3/ListObjectsV2", "presign S3/GetObject"],
    ...["S3/HeadObject", "S3/DeleteObject", "remove nar file"],
  ]);
  const parts = spans.filter(({ name }) => name === "S3/UploadPart")
    .flatMap((span) => factsOf(span, "aws.s3.part_number"));
  assert.deepEqual(parts.sort(), [1, 2]);
});

testUnless(
  S3_UNAVAILABLE,
  "S3 spans: an absent object is an answer, a refusal an error",
  async () => {
    await using traced = await openTraced();
    const { nars, request, spans, place } = traced;
    await request.run(async () => {
      assert.equal(await nars.open(at, STAYS), undefined);
      Deno.removeSync(server!.folderOf(place), { recursive: true });
      await assert.rejects(nars.put(at, new URL(import.meta.url).pathname));
    });
    assert.deepEqual(await ended(request, spans), [
      ...["S3/HeadObject", "S3/GetObject", "open nar file"],
      ...["S3/PutObject", "S3/HeadObject", "S3/GetObject", "publish nar file failed"],
    ]);
    const [status] = factsOf(spans[0]!, "http.response.status_code");
    assert.equal(status, 404);
  },
);
