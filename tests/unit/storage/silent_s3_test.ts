import assert from "node:assert/strict";
import { OpenS3Nar } from "../../../src/storage/s3/open_s3_nar.ts";
import type { S3Access } from "../../../src/storage/s3/s3_access.ts";
import { S3Marks } from "../../../src/storage/s3/s3_marks.ts";
import { traceS3 } from "../../../src/storage/s3/traced_s3.ts";
import type { Seal } from "../../../src/nix/stored_name.ts";
import { PlayedTime } from "../../support/played_time.ts";
import { RecordedSpans } from "../../support/recorded_spans.ts";

const SILENT_MS = 60_000;
const ETAG = '"tag"';
const BYTES = 100;

Deno.test("S3 spans: a read that is given up for silence fails its span", async () => {
  const { tracer, list } = new RecordedSpans();
  const s3 = silentStore();
  traceS3(s3, tracer);
  const request = tracer.request("GET", "/nar/{name}", new Headers());
  using time = new PlayedTime();
  const object = { key: "nar/a", etag: ETAG, fileSize: BYTES, seal: "seal" as Seal };

  const read = request?.run(() => new OpenS3Nar(s3, object).bytes());
  const refused = assert.rejects(read ?? Promise.resolve(), /no byte came for 10s/);
  await time.advance(SILENT_MS);
  await refused;

  const errors = list.map(({ name, error }) => [name, error]);
  assert.equal(errors.length, 4, "it is tried again");
  for (const [name, error] of errors) {
    assert.equal(name, "S3/GetObject");
    assert.match(String(error), /no byte came for 10s/);
  }
});

Deno.test("S3 spans: an operation without an answer in time fails its span", async () => {
  const { tracer, list } = new RecordedSpans();
  const send = (_: unknown, { abortSignal }: { readonly abortSignal: AbortSignal }) => (
    new Promise((_, reject) => {
      abortSignal.addEventListener("abort", () => reject(abortSignal.reason));
    })
  );
  const s3 = { client: { send } as unknown as S3Access["client"], bucket: "nars" };
  traceS3(s3, tracer);
  const request = tracer.request("GET", "/nar/{name}", new Headers());
  using time = new PlayedTime();

  const read = request?.run(() => new S3Marks(s3).read());
  const refused = assert.rejects(read ?? Promise.resolve(), /no answer within 5.0s/);
  await time.advance(SILENT_MS);
  await refused;

  const [span, ...more] = list.map(({ name, error }) => `${name}: ${error}`);
  assert.deepEqual(more, []);
  assert.match(span ?? "", /^S3\/GetObject: .*no answer within 5.0s/);
});

/** A store whose bodies begin, and never go on. */
function silentStore(): S3Access {
  const send = () =>
    Promise.resolve({
      $metadata: { httpStatusCode: 206 },
      ETag: ETAG,
      ContentRange: `bytes 0-${BYTES - 1}/${BYTES}`,
      Body: { transformToWebStream: () => new ReadableStream(), transformToString: () => "" },
    });
  return { client: { send } as unknown as S3Access["client"], bucket: "nars" };
}
