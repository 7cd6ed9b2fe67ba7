import assert from "node:assert/strict";
import { WorkFolder } from "../../../src/storage/local/work_folder.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const HOUR_MS = 3_600_000;

Deno.test("work folder: a process has its own, and it goes with the process", () => {
  using base = tempFolder();
  const { log } = recordingLogger();
  {
    using folder = open(base.path, log);
    Deno.writeTextFileSync(`${folder.path}/x.part`, "growing");
    assert.deepEqual(namesIn(base.path), [folder.owner]);
  }
  assert.deepEqual(namesIn(base.path), []);
});

Deno.test("work folder: a process that lives keeps its files, and they are counted", () => {
  using base = tempFolder();
  const { log } = recordingLogger();
  using folder = open(base.path, log);
  using other = open(base.path, log, "elsewhere");
  Deno.writeTextFileSync(`${other.path}/x.part`, "growing");

  folder.survey();

  assert.ok(folder.isAlive(other.owner));
  assert.equal(folder.othersBytes, "growing".length);
  assert.deepEqual(namesIn(other.path), ["x.part"]);
});

Deno.test("work folder: what a process left that is dead goes at once", () => {
  using base = tempFolder();
  const { log, lines } = recordingLogger();
  using folder = open(base.path, log);
  const [machine, namespace, pid] = folder.owner.split("-");
  const dead = [
    `${machine}-${namespace}-999999999-00000000`,
    `${machine}-${namespace}-${pid}-0000000a`,
  ];
  for (const owner of dead) {
    Deno.mkdirSync(`${base.path}/${owner}`);
    Deno.writeTextFileSync(`${base.path}/${owner}/x.part`, "left");
  }

  folder.survey();

  assert.deepEqual(dead.map((owner) => folder.isAlive(owner)), [false, false]);
  assert.deepEqual(namesIn(base.path), [folder.owner]);
  assert.equal(folder.othersBytes, 0);
  assert.deepEqual(lines().map(({ msg }) => msg), ["orphan removed", "orphan removed"]);
});

Deno.test("work folder: a process elsewhere is dead when it said nothing for ten minutes", () => {
  using base = tempFolder();
  const { log } = recordingLogger();
  const owner = "00000000-17-1-00000000";
  Deno.mkdirSync(`${base.path}/${owner}`);
  using folder = open(base.path, log);
  assert.ok(folder.isAlive(owner));
  const then = new Date(Date.now() - HOUR_MS);
  Deno.utimeSync(`${base.path}/${owner}`, then, then);
  assert.ok(!folder.isAlive(owner));
  assert.ok(!folder.isAlive("00000000-17-1-0000000b"));
  assert.ok(!folder.isAlive("whatever"));
});

Deno.test("work folder: an old stray growing file goes, a young one and other files stay", () => {
  using base = tempFolder();
  for (const name of ["old.part", "young.part", "old.nar"]) {
    Deno.writeTextFileSync(`${base.path}/${name}`, "12345");
  }
  const then = new Date(Date.now() - 2 * HOUR_MS);
  for (const name of ["old.part", "old.nar"]) {
    Deno.utimeSync(`${base.path}/${name}`, then, then);
  }
  using folder = open(base.path, recordingLogger().log);
  folder.survey();
  assert.deepEqual(namesIn(base.path), [folder.owner, "old.nar", "young.part"].sort());
  assert.equal(folder.othersBytes, 10);
});

Deno.test("work folder: a folder that cannot be listed is a warning and no failure", () => {
  const base = tempFolder();
  const { log, lines } = recordingLogger();
  using folder = open(base.path, log);
  base[Symbol.dispose]();
  folder.survey();
  assert.deepEqual(lines().map(({ level, msg }) => [level, msg]), [
    ["warn", "orphans not looked for"],
  ]);
});

function open(base: string, log: ReturnType<typeof createLogger>, hostname = "here"): WorkFolder {
  return new WorkFolder(base, { hostname, nowMs: Date.now, log });
}

function namesIn(path: string): readonly string[] {
  return [...Deno.readDirSync(path)].map(({ name }) => name).sort();
}

function recordingLogger() {
  const texts: string[] = [];
  const log = createLogger("debug", { write: (text) => void texts.push(text) });
  return { log, lines: () => texts.map((text) => JSON.parse(text)) };
}
