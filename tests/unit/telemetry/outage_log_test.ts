import assert from "node:assert/strict";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { type OutageLine, OutageLog } from "../../../src/telemetry/outage_log.ts";

const FULL: OutageLine = { level: "error", message: "disk is full" };

function logged(play: (outage: OutageLog) => void): readonly string[] {
  const lines: string[] = [];
  const write = (line: string) => {
    const { level, msg, times } = JSON.parse(line);
    lines.push(times === undefined ? `${level} ${msg}` : `${level} ${msg} ${times}`);
  };
  play(new OutageLog(createLogger("debug", { write }), "disk has room"));
  return lines;
}

Deno.test("outage log: an outage is logged when it begins and when it ends", () => {
  const lines = logged((outage) => {
    outage.worked();
    for (let outages = 0; outages < 2; outages++) {
      outage.failed(FULL);
      outage.failed(FULL);
      outage.worked();
      outage.worked();
    }
  });
  const once = ["error disk is full", "debug disk is full", "info disk has room 2"];
  assert.deepEqual(lines, [...once, ...once]);
});

Deno.test("outage log: a failure that finds another state is logged again", () => {
  const lines = logged((outage) => {
    for (const state of ["half", "half", "all", "half"]) outage.failed(FULL, {}, state);
  });
  assert.deepEqual(lines.map((line) => line.split(" ")[0]), ["error", "debug", "error", "error"]);
});
