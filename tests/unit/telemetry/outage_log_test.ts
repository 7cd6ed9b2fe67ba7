import assert from "node:assert/strict";
import { EVENTS } from "../../../src/telemetry/events.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { OutageLog } from "../../../src/telemetry/outage_log.ts";

function logged(play: (outage: OutageLog<"nars-kept">) => void): readonly string[] {
  const lines: string[] = [];
  const write = (line: string) => {
    const { level, msg, times } = JSON.parse(line);
    lines.push(times === undefined ? `${level} ${msg}` : `${level} ${msg} ${times}`);
  };
  play(new OutageLog(createLogger("debug", { write }), "nars-kept"));
  return lines;
}

Deno.test("outage log: an outage is logged when it begins and when it ends", () => {
  const lines = logged((outage) => {
    outage.worked();
    for (let outages = 0; outages < 2; outages++) {
      outage.failed("nars-not-kept");
      outage.failed("nars-not-kept");
      outage.worked();
      outage.worked();
    }
  });
  const { words } = EVENTS["nars-not-kept"];
  const once = [`error ${words}`, `debug ${words}`, "info nars are kept again 2"];
  assert.deepEqual(lines, [...once, ...once]);
});

Deno.test("outage log: a failure that finds another state is logged again", () => {
  const lines = logged((outage) => {
    for (const state of ["half", "half", "all", "half"]) outage.failed("nars-not-kept", {}, state);
  });
  assert.deepEqual(lines.map((line) => line.split(" ")[0]), ["error", "debug", "error", "error"]);
});

Deno.test("outage log: a failure says what to do: the best that is known", () => {
  const hints: unknown[] = [];
  const write = (line: string) => void hints.push(JSON.parse(line).hint);
  const outage = new OutageLog(createLogger("debug", { write }), "nars-kept");
  outage.failed("nars-not-kept");
  outage.failed("nars-not-kept", { hint: "remove the core dump" }, "dumped");
  assert.deepEqual(hints, [EVENTS["nars-not-kept"].hint, "remove the core dump"]);
});
