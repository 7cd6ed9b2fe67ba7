import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { Growth, measureBytes, measureNar } from "../../../src/cache/verify/measure_nar.ts";
import { FIXTURE_NAR, NAR_FIXTURES } from "../../support/nar_fixtures.ts";
import { ZSTD_BLOCK_BYTES, zstdBlocks, zstdFrame } from "../../support/zstd_frames.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const DIGEST = createHash("sha256").update(FIXTURE_NAR).digest();

for (const { name, compression, bytes } of NAR_FIXTURES) {
  Deno.test(`measureNar: ${name} holds the NAR that was compressed, also as it grows`, async () => {
    using folder = tempFolder();
    const path = `${folder.path}/nar`;
    await Deno.writeFile(path, bytes);
    const order = { path, compression, narSizeMax: FIXTURE_NAR.length };
    const growth = new Growth();
    const measuring = measureNar(order, growth);
    for (const share of [0.1, 0.5, 0.9]) {
      growth.grown(Math.floor(bytes.length * share), false);
      await new Promise((resolve) => setTimeout(resolve));
    }
    growth.grown(bytes.length, true);

    const measure = await measuring;

    assert.ok(measure.kind === "measured", JSON.stringify(measure));
    assert.equal(measure.narSize, FIXTURE_NAR.length);
    assert.deepEqual(measure.digest, DIGEST);
  });

  Deno.test(`measureNar: ${name} cut in the middle is never measured as the NAR`, async () => {
    using folder = tempFolder();
    const path = `${folder.path}/nar`;
    await Deno.writeFile(path, bytes.subarray(0, bytes.length / 2));
    const measure = await measured({ path, compression, narSizeMax: FIXTURE_NAR.length });
    assert.ok(measure.kind === "undecodable" || measure.narSize < FIXTURE_NAR.length);
  });

  Deno.test(`measureNar: ${name} damaged in the middle is found, without error codes`, async () => {
    using folder = tempFolder();
    const path = `${folder.path}/nar`;
    const middle = Math.floor(bytes.length / 2);
    await Deno.writeFile(path, bytes.map((byte, at) => Math.abs(at - middle) < 8 ? ~byte : byte));
    const measure = await measured({ path, compression, narSizeMax: FIXTURE_NAR.length });
    if (measure.kind === "undecodable") assert.doesNotMatch(measure.detail, /says -?\d/);
    else assert.notDeepEqual(measure.digest, DIGEST);
  });

  Deno.test(`measureNar: ${name} is given up when it holds more than it may`, async () => {
    using folder = tempFolder();
    const path = `${folder.path}/nar`;
    await Deno.writeFile(path, bytes);
    const measure = await measured({ path, compression, narSizeMax: FIXTURE_NAR.length - 1 });
    assert.match(measure.kind === "undecodable" ? measure.detail : "", /more than/);
  });

  Deno.test(`measureNar: ${name} throws, and has no result, when it is cancelled`, async () => {
    using folder = tempFolder();
    const path = `${folder.path}/nar`;
    await Deno.writeFile(path, bytes);
    const growth = new Growth();
    const measuring = measureNar({ path, compression, narSizeMax: 1e9 }, growth);
    growth.grown(Math.floor(bytes.length / 2), false);
    await new Promise((resolve) => setTimeout(resolve));
    growth.end();
    await assert.rejects(measuring, /Cannot measure NAR: cancelled/);
  });
}

Deno.test("measureNar: a file that cannot be read throws, and has no result", async () => {
  const order = { path: "/nonexistent", compression: "xz", narSizeMax: 1 } as const;
  await assert.rejects(measured(order));
});

async function measured(order: Parameters<typeof measureNar>[0]) {
  const growth = new Growth();
  const size = await Deno.stat(order.path).then((info) => info.size, () => 1);
  growth.grown(size, true);
  return await measureNar(order, growth);
}

Deno.test("measureNar: a small file that holds much leaves others their turn", async () => {
  using folder = tempFolder();
  const [large, small] = [`${folder.path}/large`, `${folder.path}/small`];
  await Deno.writeFile(large, zstdOfZeros(3_000));
  await Deno.writeFile(small, zstdOfZeros(1));
  const over: string[] = [];
  const measuring = [large, small].map(async (path) => {
    const measure = await measured({ path, compression: "zstd", narSizeMax: 1e9 });
    over.push(path);
    return measure;
  });
  let turns = 0;
  const counting = setInterval(() => turns++);

  const measures = await Promise.all(measuring);

  clearInterval(counting);
  assert.deepEqual(over, [small, large]);
  assert.ok(turns > 5, `${turns} turns`);
  const sizes = measures.map((one) => one.kind === "measured" ? one.narSize : one.detail);
  assert.deepEqual(sizes, [3_000 * ZSTD_BLOCK_BYTES, ZSTD_BLOCK_BYTES]);
});

Deno.test("measureNar: a block of bzip2 that holds 46 MB leaves others their turn", async () => {
  const over: string[] = [];
  const bomb = Deno.readFileSync(new URL("../../fixtures/nar/zeros.bz2", import.meta.url));
  const honest = NAR_FIXTURES.filter(({ compression }) => compression === "bzip2");
  const files = [...Array(8).fill({ name: "bomb", compression: "bzip2", bytes: bomb }), ...honest];

  const measures = await Promise.all(files.map(async ({ name, compression, bytes }) => {
    const narSizeMax = name === "bomb" ? 10_000_000 : FIXTURE_NAR.length;
    const measure = await measureBytes(new Blob([bytes]).stream(), { compression, narSizeMax });
    over.push(name);
    return measure.kind;
  }));

  assert.deepEqual(over.slice(0, honest.length), honest.map(({ name }) => name));
  const kinds = files.map(({ name }) => name === "bomb" ? "undecodable" : "measured");
  assert.deepEqual(measures, kinds);
});

function zstdOfZeros(blocks: number): Uint8Array {
  return zstdFrame({ window: 7 << 3, blocks: zstdBlocks(blocks) });
}

Deno.test("measureNar: ten thousand frames with large windows are measured", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/nar`;
  const one = zstdFrame({ window: WINDOW_8_MIB, blocks: ONE_BYTE_BLOCKS });
  const empty = zstdFrame({ window: WINDOW_128_MIB, blocks: EMPTY });
  const large = zstdFrame({ window: WINDOW_128_MIB, blocks: ONE_BYTE_BLOCKS });
  await Deno.writeFile(path, Buffer.concat([repeated(one, 10), repeated(empty, 10_000), large]));

  const measure = await measured({ path, compression: "zstd", narSizeMax: 128 << 20 });

  assert.equal(measure.kind === "measured" ? measure.narSize : measure.detail, 11 * BLOCKS);
});

const WINDOW_8_MIB = 13 << 3;
const WINDOW_128_MIB = 17 << 3;

const BLOCKS = 1_000;

/** Blocks that are not compressed. */
const ONE_BYTE_BLOCKS = Array.from(
  { length: BLOCKS },
  (_, index) => [1 << 3 | Number(index === BLOCKS - 1), 0, 0, 0x2a],
).flat();

/** The last block, with nothing in it. */
const EMPTY = [1, 0, 0];

function repeated(bytes: Uint8Array, count: number): Uint8Array {
  const all = new Uint8Array(bytes.length * count);
  for (let index = 0; index < count; index++) all.set(bytes, index * bytes.length);
  return all;
}
