import assert from "node:assert/strict";
import { createLogger, type Logger } from "../../../src/telemetry/logger.ts";
import { OutageLog } from "../../../src/telemetry/outage_log.ts";
import { OUTAGES } from "../../../src/telemetry/outages.ts";
import { quietWhileAway } from "../../../src/telemetry/quiet_while_away.ts";
import { isPresent, RecentProblems } from "../../../src/telemetry/recent_problems.ts";

class Scene {
  readonly lines: string[] = [];
  readonly problems = new RecentProblems(() => this.nowMs);
  readonly log: Logger;
  nowMs = 0;

  constructor() {
    const write = (line: string) => {
      const { level, msg } = JSON.parse(line);
      this.lines.push(`${level} ${msg}`);
    };
    const quiet = createLogger("info", { write });
    const log = this.problems.watch(quiet);
    this.log = quietWhileAway({ log, quiet, nowMs: () => this.nowMs });
  }

  get present(): readonly string[] {
    return this.problems.list().filter((problem) => isPresent(problem, this.nowMs))
      .map(({ message }) => message);
  }
}

const AWAY = "warn database does not answer";
const BACK = "info database answers again";

Deno.test("quiet without database: the log and the page tell of its outage alone", () => {
  const scene = new Scene();
  const database = new OutageLog(scene.log, OUTAGES.database);
  const heartbeat = new OutageLog(scene.log, OUTAGES.heartbeat);
  database.failed("database does not answer");
  for (let beat = 0; beat < 2; beat++) heartbeat.failed("heartbeat not written");
  scene.log.warn("search for dead members failed");
  assert.deepEqual(scene.present, ["database does not answer"]);
  database.worked();
  scene.log.error("eviction failed");
  heartbeat.worked();

  assert.deepEqual(scene.lines, [AWAY, BACK]);
  assert.deepEqual(scene.present, []);
});

Deno.test("quiet without database: a failure that outlasts its outage is logged", () => {
  const scene = new Scene();
  const database = new OutageLog(scene.log, OUTAGES.database);
  const room = new OutageLog(scene.log, OUTAGES.room);
  database.failed("database does not answer");
  room.failed("nar not kept");
  database.worked();
  scene.nowMs = 60_000;
  for (let nar = 0; nar < 2; nar++) room.failed("nar not kept");
  assert.deepEqual(scene.present, ["nar not kept"]);
  room.worked();

  assert.deepEqual(scene.lines, [
    AWAY,
    BACK,
    "warn nar not kept",
    "info there is room for nars again",
  ]);
  assert.deepEqual(scene.present, []);
});

Deno.test("quiet without storage: what the store refuses is one problem, the store's", () => {
  const scene = new Scene();
  const store = new OutageLog(scene.log, OUTAGES.narStore);
  store.failed("nar store unavailable: nars pass through");
  new OutageLog(scene.log, OUTAGES.reconciliation).failed("not reconciled");
  const keeping = new OutageLog(scene.log, OUTAGES.keeping);
  for (let nar = 0; nar < 2; nar++) keeping.failed("nars cannot be kept: they pass through");
  scene.log.error("upload failed");
  assert.deepEqual(scene.present, ["nar store unavailable: nars pass through"]);
  store.worked();
  keeping.worked();

  assert.deepEqual(scene.present, []);
  assert.equal(scene.lines.length, 2);
});

Deno.test("quiet without database: earlier problems, and those of other causes, are logged", () => {
  const scene = new Scene();
  const database = new OutageLog(scene.log, OUTAGES.database);
  const pins = new OutageLog(scene.log, OUTAGES.pins);
  pins.failed("reading pins failed");
  database.failed("database does not answer");
  pins.failed("reading pins failed");
  scene.log.warn("download broke off");
  scene.log.error("certificate replacement failed");
  pins.worked();

  assert.deepEqual(scene.lines, [
    "warn reading pins failed",
    AWAY,
    "warn download broke off",
    "error certificate replacement failed",
    "info pins are read again",
  ]);
});
