import assert from "node:assert/strict";
import { Pins } from "../../../src/pins/pins.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { hash, put } from "../../support/metadata_rows.ts";

const HASH = hash("root");

Deno.test("pins: a pin is written once, with its time, and goes when it is removed", async () => {
  const metadata = new MemoryMetadataStore();
  let [nowMs, changes] = [1_000, 0];
  const kept: string[] = [];
  const pins = new Pins({
    ...{ metadata, nowMs: () => nowMs, changed: () => void changes++ },
    keepsComplete: (root) => void kept.push(root),
  });
  assert.equal(await pins.pin(HASH), false);
  assert.equal(await metadata.findPin(HASH), undefined);

  await metadata.apply([put(HASH, [])]);
  assert.equal(await pins.pin(HASH), true);
  nowMs = 2_000;
  assert.equal(await pins.pin(HASH), true);
  assert.equal((await metadata.findPin(HASH))?.pinnedAtMs, 1_000);
  assert.equal(changes, 1);

  assert.equal(await pins.pin(HASH, true), true);
  assert.equal(changes, 2);
  assert.equal((await metadata.findPin(HASH))?.keepComplete, true);
  await pins.pin(HASH);
  assert.equal((await metadata.findPin(HASH))?.keepComplete, true, "it stays");
  await pins.pin(HASH, false);
  assert.deepEqual(await metadata.findPin(HASH), { storePathHash: HASH, pinnedAtMs: 1_000 });
  assert.deepEqual(kept, [HASH], "larder fetches for it once it is asked to");

  await pins.unpin(HASH);
  assert.equal(await metadata.findPin(HASH), undefined);
});

Deno.test("pins: a name keeps its newest roots, of narinfos that are stored, complete if asked", async () => {
  const metadata = new MemoryMetadataStore();
  const kept: string[] = [];
  const deps = { metadata, nowMs: () => 1_000, changed: () => undefined };
  const pins = new Pins({ ...deps, keepsComplete: (root) => void kept.push(root) });
  const [name, one, other] = [{ name: "system", keep: 1 }, hash("one"), hash("other")];
  assert.equal(await pins.roll(name, one, true), false, "nothing is stored");
  assert.deepEqual([await metadata.findPin(one), kept], [undefined, []]);

  await metadata.apply([put(one, []), put(other, [])]);
  assert.equal(await pins.roll(name, one, true), true);
  assert.equal((await metadata.findPin(one))?.keepComplete, true);
  assert.deepEqual(kept, [one]);
  assert.equal(await pins.roll(name, other), true);
  assert.deepEqual([await metadata.findPin(one), kept], [undefined, [one]]);
  assert.equal((await metadata.findPin(other))?.keepComplete, undefined);

  assert.equal(await pins.unpinName("another"), false);
  assert.equal(await pins.unpinName(name.name), true);
  assert.equal(await metadata.findPin(other), undefined);
});

Deno.test("pins: what cannot be noted fails the pin, and larder fetches nothing for it", async () => {
  const metadata = new MemoryMetadataStore();
  await metadata.apply([put(HASH, [])]);
  metadata.notePin = () => Promise.reject(new Error("disk I/O error"));
  let changes = 0;
  const pins = new Pins({
    ...{ metadata, nowMs: () => 1_000, changed: () => void changes++ },
    keepsComplete: () => assert.fail("it is not asked to"),
  });
  await assert.rejects(pins.pin(HASH, true), /disk I\/O error/);
  await assert.rejects(pins.roll({ name: "system", keep: 1 }, HASH, true), /disk I\/O error/);
  assert.equal(changes, 2, "both are pinned all the same");
});
