import assert from "node:assert/strict";
import {
  diskLimitBytes,
  limitOrigin,
  moreRoomHint,
  SizeLimit,
} from "../../../src/space/size_limit.ts";
import { eventually } from "../../support/eventually.ts";
import { StockedSpace } from "../../support/stocked_space.ts";

const GIB = 2 ** 30;

/** A disk on which others hold `othersBytes`, beside what larder keeps. */
class PlayedDisk {
  readonly totalBytes: number;
  othersBytes = 0;
  heldBytes = () => 0;
  partial = 0;
  isBroken = false;

  constructor(totalBytes: number) {
    this.totalBytes = totalBytes;
  }

  async room() {
    // A disk takes its time to answer.
    await new Promise((resolve) => setTimeout(resolve));
    if (this.isBroken) throw new Error("no such device");
    const usedBytes = this.heldBytes() + this.partial + this.othersBytes;
    const freeBytes = Math.max(0, this.totalBytes - usedBytes);
    return { freeBytes, totalBytes: this.totalBytes, files: undefined };
  }

  partialBytes() {
    return this.partial;
  }
}

async function onDisk(totalBytes: number) {
  const disk = new PlayedDisk(totalBytes);
  const stocked = await StockedSpace.open(SizeLimit.ofDisk(disk));
  disk.heldBytes = () => stocked.space.budget.usedBytes;
  await stocked.space.open();
  return {
    ...{ disk, stocked, space: stocked.space },
    [Symbol.asyncDispose]: () => stocked[Symbol.asyncDispose](),
  };
}

for (
  const [what, room, held, limit] of [
    ["a small disk keeps a tenth free", [100, 100], 0, 90],
    ["a large disk keeps 20 GiB free", [1_000, 1_000], 0, 980],
    ["what larder holds is its own", [40, 100], 60, 90],
    ["what others hold is not", [40, 100], 10, 40],
    ["a disk that others fill leaves a floor of 1 GiB", [0, 1_000], 5, 1],
    ["on a small disk the floor is a hundredth", [0, 10], 0, 0.1],
  ] as const
) {
  Deno.test(`size limit: ${what}`, () => {
    const [free, total] = room;
    const bytes = diskLimitBytes(
      { freeBytes: free * GIB, totalBytes: total * GIB, files: undefined },
      held * GIB,
    );
    assert.equal(bytes, Math.floor(limit * GIB));
  });
}

Deno.test("size limit: larder fills a disk up to its reserve, and evicts beyond it", async () => {
  await using given = await onDisk(1_000);
  const { stocked, space } = given;
  for (const seed of ["a", "b", "c", "d"]) await stocked.store(seed, 200);
  assert.equal(space.budget.limitBytes, 900);

  using taken = await space.reserve(200);

  assert.ok(taken, "room is made");
  assert.deepEqual(await stocked.stored(["a", "b", "c", "d"]), ["b", "c", "d"]);
});

Deno.test("size limit: a disk that is filled to its reserve has nothing evicted", async () => {
  await using given = await onDisk(1_000);
  const { stocked, space } = given;
  for (const [seed, bytes] of [["a", 400], ["b", 500]] as const) await stocked.store(seed, bytes);
  await space.lookAtDisk();
  await space.refresh();
  assert.equal(space.budget.freeBytes, 0);
  await space[Symbol.asyncDispose]();
  assert.deepEqual(await stocked.stored(["a", "b"]), ["a", "b"]);
});

Deno.test("size limit: larder evicts for others that fill its disk, and grows back", async () => {
  await using given = await onDisk(1_000);
  const { disk, stocked, space } = given;
  for (const seed of ["a", "b", "c", "d"]) await stocked.store(seed, 200);

  for (const [others, left] of [[200, 600], [400, 400]] as const) {
    disk.othersBytes = others;
    await space.lookAtDisk();
    await eventually("it has evicted", () => space.budget.usedBytes === left);
  }

  assert.deepEqual(await stocked.stored(["a", "b", "c", "d"]), ["c", "d"]);
  assert.match(JSON.stringify(stocked.logged("info")), /others fill the disk/);

  disk.othersBytes = 0;
  await space.lookAtDisk();
  assert.equal(space.budget.limitBytes, 900);
});

Deno.test("size limit: the partial files of a large download evict nothing twice", async () => {
  await using given = await onDisk(1_000);
  const { disk, stocked, space } = given;
  for (const seed of ["a", "b"]) await stocked.store(seed, 200);
  using taken = await space.reserve(500);
  assert.ok(taken);

  disk.partial = 450;
  await space.lookAtDisk();

  assert.equal(space.budget.limitBytes, 900);
  assert.deepEqual(await stocked.stored(["a", "b"]), ["a", "b"]);
});

Deno.test("size limit: a disk without figures is no limit, which larder says until it ends", async () => {
  const disk = new PlayedDisk(1_000);
  disk.isBroken = true;
  await using stocked = await StockedSpace.open(SizeLimit.ofDisk(disk));
  const { space } = stocked;
  await space.open();
  assert.equal(space.budget.limitBytes, Infinity);
  assert.equal(space.budget.limit.source, "unknown");
  assert.match(JSON.stringify(stocked.logged("warn")), /room of the disk is unknown/);
  using before = await space.reserve(5_000);
  assert.ok(before);
  before[Symbol.dispose]();

  disk.isBroken = false;
  await space.lookAtDisk();
  assert.equal(space.budget.limitBytes, 900);
  assert.match(JSON.stringify(stocked.logged("info")), /room of the disk is known again/);
  using within = await space.reserve(900);
  assert.ok(within);
  assert.equal(await space.reserve(1), undefined);

  disk.isBroken = true;
  await space.lookAtDisk();
  assert.equal(space.budget.limitBytes, 900, "the last limit stays");
});

Deno.test("size limit: each source says in words where the limit comes from", () => {
  assert.equal(limitOrigin("disk", 20 * GIB), "auto: 20.0 GiB of the disk stay free");
  const sources = ["set", "disk", "unlimited", "bucket", "unknown"] as const;
  assert.equal(new Set(sources.map((source) => limitOrigin(source))).size, sources.length);
});

Deno.test("size limit: each kind knows its source, and if the files are in a bucket", () => {
  const disk = { room: () => Promise.reject(new Error("no room")), partialBytes: () => 0 };
  const kinds = [
    SizeLimit.of(5),
    SizeLimit.of(5, true),
    SizeLimit.of(Infinity),
    SizeLimit.ofBucket(),
    SizeLimit.ofDisk(disk),
  ];
  assert.deepEqual(kinds.map(({ source, bytes, isOfBucket }) => [source, bytes, isOfBucket]), [
    ["set", 5, false],
    ["set", 5, true],
    ["unlimited", Infinity, false],
    ["bucket", Infinity, true],
    ["disk", 0, false],
  ]);
});

Deno.test("size limit: only where the disk is the limit, its room is the remedy", () => {
  assert.match(moreRoomHint("disk"), /^make room on the disk/);
  for (const source of ["set", "bucket", "unknown"] as const) {
    assert.match(moreRoomHint(source), /^raise --cache-max-size/);
  }
});
