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
import { THREADS_UNKNOWN, threadsOf } from "../../support/threads_of.ts";

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
  using encoding = encoder.start(order, () => Promise.resolve());
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

testWhere(excuse, "encoder: waits for a turn before each small part of the NAR", async () => {
  using folder = tempFolder();
  using encoder = new WorkerEncoder(WORKER_THREADS);
  const file = { path: `${folder.path}/1`, fileBytesMax: 1 << 30, narSize: nar.length };
  const [third, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let turns = 0;
  const turn = async () => {
    if (++turns < 3) return;
    third.resolve();
    await gate.promise;
  };
  using encoding = encoder.start({ ...file, compression: "none", level: 19 }, turn);
  // One piece of a file may hold much of a NAR.
  void encoding.write(nar.slice());
  encoding.end();
  await third.promise;
  await encode(await compress(nar, "xz", { stored: true }), `${folder.path}/meanwhile`);
  assert.equal(turns, 3);
  gate.resolve();
  assert.equal((await encoding.encoded).kind, "encoded");
  assert.equal(turns, Math.ceil(nar.length / (128 * 1024)));
});

testWhere(excuse, "encoder: ends where no turn comes any more", async () => {
  using folder = tempFolder();
  using encoder = new WorkerEncoder(WORKER_THREADS);
  const file = { path: `${folder.path}/1`, fileBytesMax: 1 << 30, narSize: nar.length };
  const turn = () => Promise.reject(new Error("larder stops"));
  using encoding = encoder.start({ ...file, compression: "none", level: 3 }, turn);
  void encoding.write(nar.slice());
  await assert.rejects(encoding.encoded, /larder stops/);
  await encoding.write(nar.slice());
});

testWhere(THREADS_UNKNOWN, "encoder: its thread lets all others go first", async () => {
  using folder = tempFolder();
  const before = threadsOf(Deno.pid);
  using encoder = new WorkerEncoder(WORKER_THREADS);
  const order = {
    compression: "none",
    path: `${folder.path}/1`,
    fileBytesMax: 1,
    level: 3,
  } as const;
  using encoding = encoder.start({ ...order, narSize: 0 }, () => Promise.resolve());
  encoding.end();
  await encoding.encoded.catch(() => "this Deno writes no zstd");

  const known = new Map(before.map(({ id, nice }) => [id, nice]));
  const after = threadsOf(Deno.pid);
  for (const { id, nice } of after) assert.equal(nice, known.get(id) ?? nice);
  const added = after.filter(({ id, name }) => !known.has(id) && name.startsWith("worker"));
  assert.deepEqual(added.map(({ nice }) => nice), [19]);
});
