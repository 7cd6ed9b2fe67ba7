import assert from "node:assert/strict";
import type { DiskRoom } from "../../../../src/runtime/files.ts";
import { checkDisk, checkLimit } from "../../../../src/cli/doctor/disk_check.ts";

const GIB = 1 << 30;
const ROOM: DiskRoom = {
  freeBytes: 40 * GIB,
  totalBytes: 100 * GIB,
  files: { free: 900_000, total: 1_000_000 },
};

const full = { ...ROOM, freeBytes: 2 * GIB };

function marksOf(room: DiskRoom | undefined): readonly string[] {
  return checkDisk("/storage", room).map(({ subject, mark }) => `${subject} ${mark}`);
}

for (
  const [what, room, expected] of [
    ["much room", ROOM, ["disk ok", "inodes ok"]],
    ["few bytes", { ...ROOM, freeBytes: GIB }, ["disk warning", "inodes ok"]],
    ["no bytes", { ...ROOM, freeBytes: 0 }, ["disk failed", "inodes ok"]],
    ["few inodes", { ...ROOM, files: { free: 9_000, total: 1e6 } }, ["disk ok", "inodes warning"]],
    ["no inodes", { ...ROOM, files: { free: 9, total: 1e6 } }, ["disk ok", "inodes failed"]],
    ["no number of inodes", { ...ROOM, files: undefined }, ["disk ok", "inodes ok"]],
    ["no figures", undefined, ["disk not checked"]],
  ] as const
) {
  Deno.test(`doctor: a disk with ${what} is ${expected.join(", ")}`, () => {
    assert.deepEqual(marksOf(room), expected);
  });
}

for (
  const [what, facts, mark, advice] of [
    ["auto", {}, "ok", undefined],
    ["auto, on a disk that others fill", { room: full }, "warning", "make room"],
    ["auto, below the pins", { pinnedBytes: 39 * GIB }, "warning", "or make room on the disk"],
    ["unlimited", { order: "unlimited" }, "warning", "set --cache-max-size auto, or 45G"],
    ["one that fits", { order: 20 * GIB }, "ok", undefined],
    ["more than the disk", { order: 60 * GIB }, "warning", "--cache-max-size 45G, or make"],
    [
      "less than pins need",
      { order: 10 * GIB, pinnedBytes: 9.5 * GIB },
      "warning",
      "larder pins",
    ],
    ["auto in a bucket", { room: { ...ROOM, freeBytes: Infinity } }, "ok", undefined],
    ["an unknown use", { usedBytes: undefined }, "not checked", "disk and database"],
  ] as const
) {
  Deno.test(`doctor: a size limit of ${what} is ${mark}`, () => {
    const base = { order: "auto" as const, usedBytes: 10 * GIB, pinnedBytes: 0, room: ROOM };
    const [finding] = checkLimit({ ...base, ...facts });
    assert.equal(finding?.mark, mark);
    assert.ok((finding?.advice ?? "").includes(advice ?? ""), finding?.advice);
  });
}
