import assert from "node:assert/strict";
import { WorkFolder } from "../../../src/storage/local/work_folder.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { tempFolder } from "../../support/temp_folder.ts";

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
  using other = open(base.path, log);
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
  // Of one that was killed the lock's file is left, and nobody holds it.
  const dead = [crypto.randomUUID(), crypto.randomUUID()];
  Deno.writeTextFileSync(`${locksOf(base.path)}/${dead[0]}.lock`, "");
  for (const owner of dead) {
    Deno.mkdirSync(`${base.path}/${owner}`);
    Deno.writeTextFileSync(`${base.path}/${owner}/x.part`, "left");
  }

  folder.survey();

  assert.deepEqual(dead.map((owner) => folder.isAlive(owner)), [false, false]);
  assert.ok(!folder.isAlive("../../whatever"));
  assert.deepEqual(namesIn(base.path), [folder.owner]);
  assert.equal(folder.othersBytes, 0);
  assert.deepEqual(lines().map(({ msg }) => msg), ["orphan removed", "orphan removed"]);
  assert.deepEqual(namesIn(locksOf(base.path)), [`${folder.owner}.lock`]);
});

Deno.test("work folder: a killed process is dead for the next survey", async () => {
  using base = tempFolder();
  const { log } = recordingLogger();
  using folder = open(base.path, log);
  const { href } = new URL("../../../src/storage/local/process_lock.ts", import.meta.url);
  const owner = crypto.randomUUID();
  const path = `${locksOf(base.path)}/${owner}.lock`;
  const code = `import { ProcessLock } from "${href}";
    new ProcessLock("${path}"); console.log("locked"); setInterval(() => {}, 1_000);`;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-lock", code],
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const reader = child.stdout.getReader();
  assert.match(new TextDecoder().decode((await reader.read()).value), /locked/);
  assert.ok(folder.isAlive(owner));

  child.kill("SIGKILL");
  await child.status;
  await reader.cancel();

  assert.ok(!folder.isAlive(owner));
});

Deno.test("work folder: an old stray growing file goes, a young one and other files stay", () => {
  using base = tempFolder();
  for (const name of ["old.part", "young.part", "old.nar"]) {
    Deno.writeTextFileSync(`${base.path}/${name}`, "12345");
  }
  const then = new Date(Date.now() - 2 * 3_600_000);
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

function open(base: string, log: ReturnType<typeof createLogger>): WorkFolder {
  Deno.mkdirSync(locksOf(base), { recursive: true });
  return new WorkFolder(base, { locks: locksOf(base), nowMs: Date.now, log });
}

/** Beside the folder. */
function locksOf(base: string): string {
  return `${base}-locks`;
}

function namesIn(path: string): readonly string[] {
  return [...Deno.readDirSync(path)].map(({ name }) => name).sort();
}

function recordingLogger() {
  const texts: string[] = [];
  const log = createLogger("debug", { write: (text) => void texts.push(text) });
  return { log, lines: () => texts.map((text) => JSON.parse(text)) };
}
