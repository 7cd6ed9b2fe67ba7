import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { WorkerEncoder } from "../../../src/app/workers/worker_encoder.ts";
import { hasZstdEncoder } from "../../../src/cache/recompress/encode_nar.ts";
import { WORKER_THREADS } from "../../../src/runtime/threads.ts";
import { compress } from "../../support/compressors.ts";
import { decompress } from "../../support/decompressors.ts";
import { testWhere } from "../../support/program.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const { nar } = makeStoreObject({ name: "thing-1.0", size: 3_000_000 });
const encodeHex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const excuse = hasZstdEncoder() ? "" : "this Deno writes no zstd";

async function encode(
  file: Uint8Array<ArrayBuffer>,
  path: string,
  { narSize = nar.length, fileBytesMax = 1 << 30 } = {},
) {
  using encoder = new WorkerEncoder(WORKER_THREADS);
  const order = { compression: "xz", narSize, path, fileBytesMax, level: 3 } as const;
  using encoding = encoder.start(order);
  for (let at = 0; at < file.length; at += 100_000) {
    await encoding.write(file.slice(at, at + 100_000));
  }
  encoding.end();
  return await encoding.encoded;
}

testWhere(excuse, "encoder: writes the NAR of a file again in zstd, with its hashes", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/new`;
  const encoded = await encode(await compress(nar, "xz", { stored: true }), path);
  assert.equal(encoded.kind, "encoded");
  const file = Deno.readFileSync(path);
  const digestOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
  assert.equal(encoded.kind === "encoded" && encoded.fileSize, file.length);
  if (encoded.kind !== "encoded") return;
  assert.equal(encodeHex(encoded.fileDigest), digestOf(file));
  assert.equal(encodeHex(encoded.narDigest), digestOf(nar));
  assert.deepEqual(await decompress(file, "zstd"), nar);
});

testWhere(
  excuse,
  "encoder: a NAR of another size, and a damaged file, are undecodable",
  async () => {
    using folder = tempFolder();
    const file = await compress(nar, "xz", { stored: true });
    const kinds = [
      await encode(file, `${folder.path}/1`, { narSize: nar.length - 1 }),
      await encode(file, `${folder.path}/2`, { narSize: nar.length + 1 }),
      await encode(file.subarray(0, -9), `${folder.path}/3`),
      await encode(file.with(1_000_000, (file[1_000_000] ?? 0) ^ 1), `${folder.path}/4`),
    ].map(({ kind }) => kind);
    assert.deepEqual(kinds, ["undecodable", "undecodable", "undecodable", "undecodable"]);
  },
);

testWhere(excuse, "encoder: a file that becomes too large ends it", async () => {
  using folder = tempFolder();
  const file = await compress(nar, "xz", { stored: true });
  const { kind } = await encode(file, `${folder.path}/1`, { fileBytesMax: 100_000 });
  assert.equal(kind, "too-large");
});
