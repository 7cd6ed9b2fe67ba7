import assert from "node:assert/strict";
import { newMemberId } from "../../../src/base/member_id.ts";
import { LocalSpool } from "../../../src/storage/local/local_spool.ts";
import { makePartialFile } from "../../../src/storage/spool.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("spool: a member has its own, and it goes with the member", () => {
  using base = tempFolder();
  {
    using folder = open(base.path);
    Deno.writeTextFileSync(`${folder.path}/x.part`, "growing");
    assert.equal(namesIn(base.path).length, 1);
    assert.deepEqual(folder.others(), []);
  }
  assert.deepEqual(namesIn(base.path), []);
});

Deno.test("spool: the others are members, and no more", () => {
  using base = tempFolder();
  using folder = open(base.path);
  const others = [newMemberId("build-box.example", 4711), newMemberId("other.example", 1)].sort();
  for (const name of [...others, crypto.randomUUID(), "tmp.1234.abcdef12"]) {
    Deno.mkdirSync(`${base.path}/${name}`);
  }
  Deno.writeTextFileSync(`${base.path}/old.part`, "");
  assert.deepEqual([...folder.others()].sort(), others);
});

Deno.test("spool: that of a dead member goes with its files", () => {
  using base = tempFolder();
  const { log, lines } = recordingLogger();
  using folder = open(base.path, log);
  const dead = newMemberId("host", 1);
  Deno.mkdirSync(`${base.path}/${dead}`);
  Deno.writeTextFileSync(`${base.path}/${dead}/x.part`, "left");

  assert.ok(folder.remove(dead));

  assert.deepEqual(folder.others(), []);
  assert.ok(folder.remove(dead), "nothing of it is left");
  assert.deepEqual(lines().map(({ msg }) => msg), ["folder of partial files removed"]);
});

Deno.test("spool: the whole files of a dead member are taken over, once", () => {
  using base = tempFolder();
  using folder = open(base.path);
  const dead = newMemberId("host", 1);
  Deno.mkdirSync(`${base.path}/${dead}`);
  Deno.writeTextFileSync(`${base.path}/${dead}/x.part`, "left");
  Deno.writeTextFileSync(`${base.path}/${dead}/y.received`, "whole");

  assert.ok(folder.remove(dead));

  const path = `${folder.path}/y.received`;
  assert.deepEqual(folder.takeReceived(), [path]);
  assert.deepEqual(folder.takeReceived(), []);
  assert.equal(Deno.readTextFileSync(path), "whole");
  assert.deepEqual(folder.others(), []);
});

Deno.test("spool: whole files are shared before their member is dead, and once", () => {
  using base = tempFolder();
  using folder = open(base.path);
  using owner = open(base.path);
  const its = `${owner.path}/y.received`;
  Deno.writeTextFileSync(`${owner.path}/x.part`, "growing");
  Deno.writeTextFileSync(its, "whole");

  folder.share(folder.others());
  folder.share([...folder.others(), newMemberId("host", 1)]);

  const path = `${folder.path}/y.received`;
  assert.deepEqual(folder.takeReceived(), [path]);
  // A member that lives stores its own name.
  Deno.renameSync(its, `${owner.path}/stored`);
  assert.equal(Deno.readTextFileSync(path), "whole");
  Deno.renameSync(`${owner.path}/stored`, its);
  // One that is dead by now has nothing more to give.
  Deno.removeSync(path);
  assert.ok(folder.remove(folder.others()[0] ?? ""));
  assert.deepEqual(folder.takeReceived(), []);
  assert.deepEqual(namesIn(folder.path), []);
});

Deno.test("spool: a member that ends leaves its whole files, and no others", () => {
  using base = tempFolder();
  const ended = open(base.path);
  Deno.writeTextFileSync(`${ended.path}/x.part`, "left");
  Deno.writeTextFileSync(`${ended.path}/y.received`, "whole");
  ended[Symbol.dispose]();
  assert.deepEqual(namesIn(ended.path), ["y.received"]);
});

Deno.test("spool: each that cannot be removed is named once, until all are gone", () => {
  const base = tempFolder();
  const { log, lines } = recordingLogger();
  using folder = open(base.path, log);
  const [dead, other] = [newMemberId("host", 1), newMemberId("host", 2)];
  // A path through a file is no directory's.
  base[Symbol.dispose]();
  Deno.writeTextFileSync(base.path, "");
  try {
    for (const member of [dead, other, dead, other]) assert.equal(folder.remove(member), false);
    const warnings = lines().filter(({ level }) => level === "warn");
    assert.deepEqual(warnings.map(({ path }) => path), [
      `${base.path}/${dead}`,
      `${base.path}/${other}`,
    ]);
  } finally {
    Deno.removeSync(base.path);
  }
  for (const member of [dead, other]) assert.equal(folder.remove(member), true);
  const news = lines().filter(({ level }) => level === "info");
  assert.deepEqual(news.map(({ msg }) => msg), ["folders of partial files are removed again"]);
});

Deno.test("spool: one that another process removed is made again", () => {
  using base = tempFolder();
  using folder = open(base.path);
  folder.restore();
  Deno.removeSync(folder.path, { recursive: true });
  folder.restore();
  Deno.writeTextFileSync(`${folder.path}/x.part`, "growing");
});

Deno.test("spool: a partial file makes a folder again that others removed", () => {
  using base = tempFolder();
  using folder = open(base.path);
  Deno.removeSync(folder.path, { recursive: true });
  Deno.writeTextFileSync(makePartialFile(folder.path, "x."), "growing");
});

Deno.test("spool: a folder that cannot be listed is one warning and no failure", () => {
  const base = tempFolder();
  const { log, lines } = recordingLogger();
  using folder = open(base.path, log);
  base[Symbol.dispose]();
  assert.deepEqual([folder.others(), folder.others()], [[], []]);
  const warnings = lines().filter(({ level }) => level === "warn");
  assert.deepEqual(warnings.map(({ msg }) => msg), ["folder of partial files not read"]);
});

function open(base: string, log = recordingLogger().log): LocalSpool {
  return new LocalSpool(base, { member: newMemberId("host", Deno.pid), log });
}

function namesIn(path: string): readonly string[] {
  return [...Deno.readDirSync(path)].map(({ name }) => name).sort();
}

function recordingLogger() {
  const texts: string[] = [];
  const log = createLogger("debug", { write: (text) => void texts.push(text) });
  return { log, lines: () => texts.map((text) => JSON.parse(text)) };
}

Deno.test("spool: a shared file that is stored has one name, and its seal stays", () => {
  using base = tempFolder();
  using folder = open(base.path);
  using owner = open(base.path);
  const its = `${owner.path}/y.received`;
  Deno.writeTextFileSync(its, "whole");
  folder.share(folder.others());
  const [path = ""] = folder.takeReceived();

  folder.claim(path);
  const stored = `${base.path}/stored`;
  Deno.renameSync(path, stored);
  const { ctime } = Deno.statSync(stored);
  assert.ok(folder.remove(folder.others()[0] ?? ""));
  assert.deepEqual(Deno.statSync(stored).ctime, ctime);
  assert.equal(Deno.statSync(stored).nlink, 1);
  assert.deepEqual(folder.takeReceived(), []);
});
