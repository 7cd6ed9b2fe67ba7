import assert from "node:assert/strict";
import { createLogger, type Logger } from "../../../src/telemetry/logger.ts";
import { OutageLog } from "../../../src/telemetry/outage_log.ts";
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
  const database = new OutageLog(scene.log, "database-back");
  const heartbeat = new OutageLog(scene.log, "heartbeats-written");
  database.failed("database-away");
  for (let beat = 0; beat < 2; beat++) heartbeat.failed("heartbeat-not-written");
  scene.log.event("dead-members-not-sought");
  assert.deepEqual(scene.present, ["database does not answer"]);
  database.worked();
  scene.log.event("eviction-failed");
  heartbeat.worked();

  assert.deepEqual(scene.lines, [AWAY, BACK]);
  assert.deepEqual(scene.present, []);
});

Deno.test("quiet without database: a failure that outlasts its outage is logged", () => {
  const scene = new Scene();
  const database = new OutageLog(scene.log, "database-back");
  const room = new OutageLog(scene.log, "nars-have-room");
  database.failed("database-away");
  room.failed("nar-without-room");
  database.worked();
  scene.nowMs = 60_000;
  for (let nar = 0; nar < 2; nar++) room.failed("nar-without-room");
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
  const store = new OutageLog(scene.log, "nar-store-back");
  store.failed("nar-store-away");
  new OutageLog(scene.log, "reconciliation-works").failed("not-reconciled");
  const keeping = new OutageLog(scene.log, "nars-kept");
  for (let nar = 0; nar < 2; nar++) keeping.failed("nars-not-kept");
  scene.log.event("upload-failed");
  assert.deepEqual(scene.present, ["nar store unavailable: nars pass through"]);
  store.worked();
  keeping.worked();

  assert.deepEqual(scene.present, []);
  assert.equal(scene.lines.length, 2);
});

Deno.test("quiet without database: earlier problems, and those of other causes, are logged", () => {
  const scene = new Scene();
  const database = new OutageLog(scene.log, "database-back");
  const pins = new OutageLog(scene.log, "pins-read");
  pins.failed("pins-not-read");
  database.failed("database-away");
  pins.failed("pins-not-read");
  scene.log.event("download-broke-off");
  scene.log.event("certificate-not-replaced");
  pins.worked();

  assert.deepEqual(scene.lines, [
    "warn reading pins failed",
    AWAY,
    "warn download broke off",
    "error certificate replacement failed",
    "info pins are read again",
  ]);
});
