import assert from "node:assert/strict";
import { counted, formatBytes, formatMs, formatSeconds } from "../../../src/base/format_units.ts";
import { WarmMeter } from "../../../src/cli/warm.ts";

Deno.test("format: sizes are in the largest unit that they fill", () => {
  const told = [0, 1023, 1024, 1536, 1024 ** 2 - 1, 1.5 * 1024 ** 3, 2 * 1024 ** 6].map(
    formatBytes,
  );

  assert.deepEqual(told, [
    "0 B",
    "1023 B",
    "1.0 KiB",
    "1.5 KiB",
    "1.0 MiB",
    "1.5 GiB",
    "2048.0 PiB",
  ]);
});

Deno.test("format: times and counts are written as people do", () => {
  assert.deepEqual([0, 59.4, 59.6, 125, 3_720, 273_600].map(formatSeconds), [
    "0s",
    "59s",
    "1m00s",
    "2m05s",
    "1h02m",
    "3d04h",
  ]);
  assert.deepEqual([-1, 0.4, 999.6, 1_940, 9_960, 65_000].map(formatMs), [
    ...["0ms", "0ms", "1.0s", "1.9s", "10s", "1m05s"],
  ]);
  assert.deepEqual([0, 1, 1_234].map((count) => counted(count, "path")), [
    "0 paths",
    "1 path",
    "1,234 paths",
  ]);
});

Deno.test("warm meter: it tells paths, bytes, the rate of late and the time left", () => {
  const meter = new WarmMeter();
  const at = (seconds: number, bytesDone: number, columns?: number) =>
    meter.line(
      { pathsDone: 3, pathsKnown: 9, bytesDone, bytesKnown: 100 * 1024 },
      seconds * 1_000,
      columns,
    );

  assert.equal(at(0, 0, 100), "[--------------------] 3/9 paths  0 B");
  at(1, 1_024);
  assert.equal(
    at(2, 50 * 1024, 100),
    "[##########----------] 3/9 paths  50.0 KiB  25.0 KiB/s  2s left",
  );
  for (const seconds of [11, 20]) at(seconds, 50 * 1024);
  assert.equal(at(30, 50 * 1024, 60), "3/9 paths  50.0 KiB  0 B/s");
  assert.equal(at(31, 60 * 1024), "3/9 paths  60.0 KiB  10.0 KiB/s  4s left");
});
