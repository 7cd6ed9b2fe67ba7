import assert from "node:assert/strict";
import { recover, settlingOutage } from "../../../src/space/recover.ts";
import type { Change } from "../../../src/metadata/metadata_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { fileOf, hash, keep, narOf, put } from "../../support/metadata_rows.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { NO_SPOOL } from "../../support/no_spool.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const path = hash("a");
const { name: narName } = narOf(path);
const [first, second] = [fileOf(narName), fileOf(narName)];
const publishing: Change = { kind: "nar-publishing", at: second.at, owner: "dead" };
const marked: Change = { kind: "nar-marked", at: first.at, owner: "dead" };

interface Case {
  readonly changes: readonly Change[];
  /** Objects that lie in the store. */
  readonly there: readonly (typeof first)[];
  readonly keeps: readonly (typeof first)[];
}

/** Leftovers of a crash, and the objects that the start keeps. */
const CASES: Readonly<Record<string, Case>> = {
  "before an object was there": { changes: [publishing], there: [], keeps: [] },
  "between an object and its row": { changes: [publishing], there: [second], keeps: [] },
  "between marking and removing": { changes: [...keep(first), marked], there: [first], keeps: [] },
  "between removing and saying so": { changes: [...keep(first), marked], there: [], keeps: [] },
  "before another object took its place": {
    changes: [...keep(first), publishing],
    there: [first, second],
    keeps: [first],
  },
  "after another object took its place": {
    changes: [...keep(first), ...keep(second, 1, "dead")],
    there: [first, second],
    keeps: [second],
  },
};

for (const [when, { changes, there, keeps }] of Object.entries(CASES)) {
  Deno.test(`recover: after a crash ${when} the counts match the files`, async () => {
    using folder = tempFolder();
    const nars = new MemoryNarStore();
    const metadata = new MemoryMetadataStore();
    await metadata.apply([put(path, []), ...changes]);
    for (const { at, fileSize } of there) {
      Deno.writeFileSync(`${folder.path}/x`, new Uint8Array(fileSize));
      await nars.put(at, `${folder.path}/x`);
    }

    await recover({ metadata, nars, spool: NO_SPOOL, member: "we", log });

    const names = keeps.map(({ at }) => at);
    assert.deepEqual(await Array.fromAsync(nars.list(""), ({ at }) => at), names);
    assert.deepEqual((await metadata.findNar(narName))?.kept, keeps[0]);
    assert.deepEqual(await metadata.pendingFiles(), []);
    assert.equal((await metadata.stock()).pendingBytes, 0);
  });
}

Deno.test("recover: the pending objects of a living member stay", async () => {
  const scene = new Scene();
  await scene.metadata.apply([put(path, []), publishing]);
  await scene.metadata.beat("dead", { reservedBytes: 0, limitBytes: 0 });
  scene.folders.add("dead");

  await scene.recover();

  assert.equal((await scene.metadata.pendingFiles()).length, 1);
  assert.deepEqual([...scene.folders], ["dead"]);
});

Deno.test("recover: the reservation of a dead member is free within a minute", async () => {
  const scene = new Scene();
  const { metadata } = scene;
  await metadata.beat("dead", { reservedBytes: 1_000, limitBytes: 1_000 });
  scene.folders.add("dead");
  for (let seconds = 0; seconds <= 60; seconds += 5) {
    await metadata.beat("we", { reservedBytes: 0, limitBytes: 1_000 });
    if (seconds % 15 === 0) await scene.recover();
    // A living one may miss some heartbeats.
    if (seconds < 25) assert.equal((await metadata.stock()).reservedBytes, 1_000);
    scene.nowMs += 5_000;
  }
  assert.equal((await metadata.stock()).reservedBytes, 0);
  assert.deepEqual([...scene.folders], []);
});

Deno.test("recover: a silent member is dead sooner if its process has ended", async () => {
  const scene = new Scene();
  const { metadata, folders } = scene;
  await metadata.beat("ended", { reservedBytes: 10, limitBytes: 10 });
  await metadata.beat("alive", { reservedBytes: 0, limitBytes: 10 });
  for (const member of ["ended", "alive", "nobody"]) folders.add(member);
  const hasEnded = (member: string) => member === "ended" || member === "we";

  scene.nowMs += 9_999;
  await scene.recover(hasEnded);
  assert.deepEqual([...folders], ["ended", "alive"]);

  scene.nowMs += 1;
  await scene.recover(hasEnded);
  assert.deepEqual([...folders], ["alive"]);
  assert.deepEqual((await metadata.members("we")).map(({ id }) => id), ["alive"]);
});

Deno.test("recover: a member that writes heartbeats lives, whatever is seen of it", async () => {
  const scene = new Scene();
  const { metadata, folders } = scene;
  folders.add("elsewhere");
  for (let seconds = 0; seconds <= 60; seconds += 5) {
    await metadata.beat("elsewhere", { reservedBytes: 10, limitBytes: 10 });
    await scene.recover(() => true);
    scene.nowMs += 5_000;
  }
  assert.deepEqual([...folders], ["elsewhere"]);
  assert.equal((await metadata.stock()).reservedBytes, 10);
});

Deno.test("recover: the bytes of files that cannot be removed stay reserved", async () => {
  const scene = new Scene();
  await scene.metadata.beat("dead", { reservedBytes: 10, limitBytes: 10 });
  scene.folders.add("dead");
  scene.nowMs += 10_000;
  scene.isStuck = true;
  await scene.recover(() => true);
  assert.equal((await scene.metadata.stock()).reservedBytes, 10);
  scene.isStuck = false;
  await scene.recover(() => true);
  assert.equal((await scene.metadata.stock()).reservedBytes, 0);
});

Deno.test("recover: a member that joins during a look for dead ones loses nothing", async () => {
  const scene = new Scene();
  const { metadata } = scene;
  await metadata.apply([put(path, [])]);
  const { pendingFiles } = metadata;
  // It joins and publishes right behind the first look.
  metadata.pendingFiles = async () => {
    const pending = await pendingFiles.call(metadata);
    await metadata.beat("dead", { reservedBytes: 0, limitBytes: 0 });
    await metadata.apply([publishing]);
    scene.folders.add("dead");
    return pending;
  };
  await scene.recover();
  metadata.pendingFiles = pendingFiles;
  assert.equal((await metadata.pendingFiles()).length, 1);
  assert.deepEqual([...scene.folders], ["dead"]);
});

Deno.test("recover: an object that its owner keeps after the look stays", async () => {
  const scene = new Scene();
  const { metadata, nars } = scene;
  using folder = tempFolder();
  Deno.writeFileSync(`${folder.path}/x`, new Uint8Array(second.fileSize));
  await metadata.apply([put(path, []), publishing]);
  await nars.put(second.at, `${folder.path}/x`);
  const { members } = metadata;
  // It wakes up right behind the last look.
  metadata.members = async (observer) => {
    const all = await members.call(metadata, observer);
    await metadata.apply([{ kind: "nar-kept", file: second, owner: "dead", atMs: 1 }]);
    return all;
  };
  await scene.recover();
  assert.deepEqual((await metadata.findNar(narName))?.kept, second);
  assert.deepEqual(await Array.fromAsync(nars.list(""), ({ at }) => at), [second.at]);
});

Deno.test("recover: the bytes of an object that cannot be removed stay reserved", async () => {
  const scene = new Scene();
  const { metadata, nars } = scene;
  await metadata.apply([put(path, []), publishing]);
  await metadata.beat("dead", { reservedBytes: 10, limitBytes: 10 });
  scene.nowMs += 10_000;
  const { remove } = nars;
  nars.remove = () => Promise.reject(new Error("the disk is ill"));
  for (let look = 1; look <= 2; look++) {
    await scene.recover(() => true);
    assert.equal((await metadata.stock()).reservedBytes, 10);
    assert.equal((await metadata.pendingFiles()).length, 1);
  }
  nars.remove = remove;
  await scene.recover(() => true);
  assert.equal((await metadata.stock()).reservedBytes, 0);
  assert.deepEqual(await metadata.pendingFiles(), []);
});

Deno.test("recover: the log names an outage of the store once, and then its end", async () => {
  const scene = new Scene();
  const { metadata, nars, said } = scene;
  await metadata.apply([put(path, []), publishing]);
  await metadata.beat("dead", { reservedBytes: 10, limitBytes: 10 });
  scene.nowMs += 60_000;
  const { remove } = nars;
  nars.remove = () => Promise.reject(new Error("away"));
  for (let look = 1; look <= 3; look++) await scene.recover();
  assert.deepEqual(said, ["interrupted nar not settled"]);
  nars.remove = remove;
  for (let look = 1; look <= 2; look++) await scene.recover();
  assert.deepEqual(said.slice(1), [
    "interrupted nar settled",
    "interrupted nars are settled again",
    "dead member removed",
  ]);
});

/** A storage whose members' folders are names in a set; `we` look at it. */
class Scene {
  nowMs = 10_000_000;
  readonly metadata = new MemoryMetadataStore(() => this.nowMs);
  readonly nars = new MemoryNarStore();
  readonly folders = new Set<string>();
  /** The messages of the log. */
  readonly said: string[] = [];
  readonly #log = createLogger("info", { write: (line) => this.said.push(JSON.parse(line).msg) });
  readonly #outage = settlingOutage(this.#log);
  /** Set to have no folder removed. */
  isStuck = false;

  async recover(hasEnded?: (member: string) => boolean): Promise<void> {
    const spool = {
      others: () => [...this.folders],
      remove: (member: string) => !this.isStuck && this.folders.delete(member),
    };
    const { metadata, nars } = this;
    const lines = { log: this.#log, outage: this.#outage };
    const looks = hasEnded === undefined ? {} : { hasEnded };
    await recover({ metadata, nars, spool, member: "we", ...lines, ...looks });
  }
}

const log = createLogger("error", { write: () => undefined });
