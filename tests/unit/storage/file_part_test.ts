import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { addFileHash, FilePart } from "../../../src/storage/s3/file_part.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const BYTES = new Uint8Array(2_000_000).map((_, index) => index >> 8);
const [START, END] = [100_000, 1_900_000];

/** A part of a file with these bytes, and a count of those that were read. */
function partOf(folder: { readonly path: string }) {
  const path = `${folder.path}/file`;
  Deno.writeFileSync(path, BYTES);
  const file = Deno.openSync(path);
  let readBytes = 0;
  const counted = {
    seekSync: (offset: number, whence: Deno.SeekMode) => file.seekSync(offset, whence),
    readSync(buffer: Uint8Array) {
      const count = file.readSync(buffer);
      readBytes += count ?? 0;
      return count;
    },
  };
  return {
    part: new FilePart(counted, START, END),
    readBytes: () => readBytes,
    cut: () => Deno.truncateSync(path, END - 1),
    [Symbol.dispose]: () => file.close(),
  };
}

Deno.test("file part: two tries to send it read the same bytes", async () => {
  using folder = tempFolder();
  using scene = partOf(folder);
  const [one, two] = [scene.part.stream(), scene.part.stream()];
  const bodies = await Promise.all([one, two].map((body) => new Response(body).bytes()));
  for (const body of bodies) assert.deepEqual(body, BYTES.slice(START, END));
});

Deno.test("file part: it is read only as far as it is sent", async () => {
  using folder = tempFolder();
  using scene = partOf(folder);
  const reader = scene.part.stream().getReader();
  const { value } = await reader.read();
  await reader.cancel();
  assert.equal(scene.readBytes(), value?.length);
  assert.ok(scene.readBytes() < (END - START) / 2, `${scene.readBytes()} bytes`);
});

Deno.test("file part: its request has the hash of its bytes", () => {
  using folder = tempFolder();
  using scene = partOf(folder);
  const headers: Record<string, string> = {};
  addFileHash({ body: scene.part, headers });
  const hash = createHash("sha256").update(BYTES.subarray(START, END)).digest("hex");
  assert.deepEqual(headers, { "x-amz-content-sha256": hash });
});

Deno.test("file part: a file that became shorter is an error, not a short body", async () => {
  using folder = tempFolder();
  using scene = partOf(folder);
  scene.cut();
  await assert.rejects(new Response(scene.part.stream()).bytes(), /became shorter/);
  assert.throws(() => scene.part.sha256(), /became shorter/);
});
