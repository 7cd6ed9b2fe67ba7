import assert from "node:assert/strict";
import { KeptNars } from "../../../src/cache/kept/kept_nars.ts";
import { sha256FromDigest } from "../../../src/nix/hash.ts";
import { SystemClock } from "../../../src/runtime/clock.ts";
import { playRuntime } from "../../../src/runtime/current.ts";
import { LocalNarStore, narPathOf } from "../../../src/storage/local/local_nar_store.ts";
import { createLogger, SILENT } from "../../../src/telemetry/logger.ts";
import { isPresent, RecentProblems } from "../../../src/telemetry/recent_problems.ts";
import { BYTES, downloadsOver, ending, know, PACKED } from "../../support/downloads_scene.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { fileOf, keep } from "../../support/metadata_rows.ts";
import { StockedSpace } from "../../support/stocked_space.ts";
import { tempFolder } from "../../support/temp_folder.ts";

for (const isReceived of [true, false]) {
  const lines = isReceived ? "no line" : "a line";
  const why = isReceived ? "that another process received anew" : "that nobody repairs";
  Deno.test(`kept nars: a missing file ${why} has ${lines}, and no check begins`, async () => {
    using folder = tempFolder();
    await using stocked = await StockedSpace.open(Infinity);
    const { metadata } = stocked;
    await know(stocked, PACKED);
    const downloads = downloadsOver({ stocked, folder, fetcher: ending() });
    if (isReceived) {
      const path = `${folder.path}/${PACKED.name}.x1y2.received`;
      Deno.writeFileSync(path, BYTES);
      await downloads.receive([path]);
    }
    await metadata.apply(keep(fileOf(PACKED.name)));
    const logged: string[] = [];
    await using nars = new MemoryNarStore();
    const kept = new KeptNars({
      ...{ metadata, nars, downloads },
      sweeper: { markAndSweep: () => assert.fail("nothing is there to remove") },
      changed: () => assert.fail("nothing was removed"),
      nowMs: () => 7,
      log: createLogger("error", { write: (line) => logged.push(JSON.parse(line).msg) }),
    });
    const nar = await metadata.findNar(PACKED.name);
    assert.ok(nar?.kept);

    const { signal } = new AbortController();
    assert.equal(await kept.open(nar, "request", { signal }), undefined);

    assert.deepEqual(logged, isReceived ? [] : ["stored nar is damaged"]);
    assert.equal(downloads.count, 0);
    assert.equal(downloads.has(PACKED.name), isReceived);
    await downloads.idle();
  });
}

for (const end of ["its NAR is stored again by another member", "its row is gone"]) {
  Deno.test(`kept nars: the problem of a lost file ends once ${end}`, async () => {
    using folder = tempFolder();
    await using stocked = await StockedSpace.open(Infinity);
    const { metadata } = stocked;
    await know(stocked, PACKED);
    await metadata.apply(keep(fileOf(PACKED.name)));
    const downloads = downloadsOver({ stocked, folder, fetcher: ending() });
    const problems = new RecentProblems(() => 7);
    let isGone = false;
    await using nars = new MemoryNarStore();
    const kept = new KeptNars({
      metadata: {
        apply: (changes) => metadata.apply(changes),
        findNar: async (name) => isGone ? undefined : await metadata.findNar(name),
      },
      ...{ nars, downloads },
      sweeper: { markAndSweep: () => assert.fail("nothing is there to remove") },
      changed: () => undefined,
      nowMs: () => 7,
      log: problems.watch(SILENT),
    });
    const nar = await metadata.findNar(PACKED.name);
    assert.ok(nar?.kept);
    const { signal } = new AbortController();
    assert.equal(await kept.open(nar, "request", { signal }), undefined);
    const shown = () => problems.list().map((one) => [one.message, isPresent(one, 7)]);

    await kept.probe();
    assert.deepEqual(shown(), [["stored nar is damaged", true]]);
    if (end === "its row is gone") isGone = true;
    else await metadata.apply(keep(fileOf(PACKED.name)));
    await kept.probe();
    assert.deepEqual(shown(), [["stored nar is damaged", false]]);
  });
}

Deno.test("kept nars: a change in the second of a file's seal is found", async () => {
  using folder = tempFolder();
  await using stocked = await StockedSpace.open(Infinity);
  const { metadata } = stocked;
  await know(stocked, PACKED);
  const file = fileOf(PACKED.name);
  const fileHash = sha256FromDigest(new Uint8Array(await crypto.subtle.digest("SHA-256", BYTES)));
  await metadata.apply(keep({ ...file, fileSize: BYTES.length, fileHash }));
  Deno.writeFileSync(`${folder.path}/nar`, BYTES);
  // The writer changes the bytes while the check waits, and sets the time of the write.
  const local = new LocalNarStore(`${folder.path}/store`);
  await local.put(file.at, `${folder.path}/nar`);
  const stored = `${folder.path}/store/${narPathOf(file.at)}`;
  const { mtime } = Deno.statSync(stored);
  using waits = new PlayedWaits(() => {
    Deno.writeFileSync(stored, BYTES.map((byte) => byte ^ 1));
    Deno.utimeSync(stored, mtime ?? 0, mtime ?? 0);
  });
  const removed: string[] = [];
  const kept = new KeptNars({
    ...{ metadata, nars: local },
    downloads: { has: () => false },
    sweeper: { markAndSweep: async ({ at }) => void removed.push(at) },
    changed: () => undefined,
    nowMs: () => 7,
    log: SILENT,
  });
  const nar = await metadata.findNar(PACKED.name);
  assert.ok(nar?.kept);

  const { signal } = new AbortController();
  assert.equal(await kept.open(nar, "request", { signal }), undefined);

  assert.equal(waits.count, 1);
  assert.deepEqual(removed, [file.at]);
  assert.equal((await metadata.findNar(PACKED.name))?.kept?.seal, undefined);
});

/** Each pause is over at once, and something happens in it. */
class PlayedWaits extends SystemClock implements Disposable {
  readonly #played: Disposable;
  readonly #happens: () => void;
  count = 0;

  constructor(happens: () => void) {
    super();
    this.#happens = happens;
    this.#played = playRuntime({ clock: this });
  }

  override async pause(): Promise<void> {
    this.count++;
    this.#happens();
  }

  [Symbol.dispose](): void {
    this.#played[Symbol.dispose]();
  }
}
