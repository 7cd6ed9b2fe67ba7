import assert from "node:assert/strict";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { OutageLog } from "../../../src/telemetry/outage_log.ts";

const DISK = {
  level: "error",
  begins: { "disk is full": "make room" },
  over: "disk has room",
} as const;

function logged(play: (outage: OutageLog<"disk is full">) => void): readonly string[] {
  const lines: string[] = [];
  const write = (line: string) => {
    const { level, msg, times } = JSON.parse(line);
    lines.push(times === undefined ? `${level} ${msg}` : `${level} ${msg} ${times}`);
  };
  play(new OutageLog(createLogger("debug", { write }), DISK));
  return lines;
}

Deno.test("outage log: an outage is logged when it begins and when it ends", () => {
  const lines = logged((outage) => {
    outage.worked();
    for (let outages = 0; outages < 2; outages++) {
      outage.failed("disk is full");
      outage.failed("disk is full");
      outage.worked();
      outage.worked();
    }
  });
  const once = ["error disk is full", "debug disk is full", "info disk has room 2"];
  assert.deepEqual(lines, [...once, ...once]);
});

Deno.test("outage log: a failure that finds another state is logged again", () => {
  const lines = logged((outage) => {
    for (const state of ["half", "half", "all", "half"]) outage.failed("disk is full", {}, state);
  });
  assert.deepEqual(lines.map((line) => line.split(" ")[0]), ["error", "debug", "error", "error"]);
});

Deno.test("outage log: a failure says what to do: the best that is known", () => {
  const hints: unknown[] = [];
  const write = (line: string) => void hints.push(JSON.parse(line).hint);
  const outage = new OutageLog(createLogger("debug", { write }), DISK);
  outage.failed("disk is full");
  outage.failed("disk is full", { hint: "remove the core dump" }, "dumped");
  assert.deepEqual(hints, ["make room", "remove the core dump"]);
});
