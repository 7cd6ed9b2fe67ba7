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
  assert.equal((await metadata.findPin(HASH))?.keepComplete, true);
  await pins.pin(HASH);
  assert.equal((await metadata.findPin(HASH))?.keepComplete, true, "it stays");
  await pins.pin(HASH, false);
  assert.deepEqual(await metadata.findPin(HASH), { storePathHash: HASH, pinnedAtMs: 1_000 });
  assert.deepEqual(kept, [HASH], "larder fetches for it once it is asked to");

  await pins.unpin(HASH);
  assert.equal(await metadata.findPin(HASH), undefined);
});
