import assert from "node:assert/strict";
import { recover } from "../../../src/space/recover.ts";
import type { Change } from "../../../src/metadata/metadata_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { fileOf, hash, keep, narOf, put } from "../../support/metadata_rows.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const path = hash("a");
const { name: narName } = narOf(path);
const [first, second] = [fileOf(narName), fileOf(narName)];
const publishing: Change = { kind: "nar-publishing", at: second.at, owner: "dead" };
const marked: Change = { kind: "nar-marked", at: first.at, owner: "dead" };

interface Case {
  readonly changes: readonly Change[];
  /** What lies in the store. */
  readonly there: readonly (typeof first)[];
  readonly keeps: readonly (typeof first)[];
}

/** What a crash left, and what is kept then. */
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
  Deno.test(`recover: after a crash ${when} what is counted is what is there`, async () => {
    using folder = tempFolder();
    const nars = new MemoryNarStore();
    const metadata = new MemoryMetadataStore();
    await metadata.apply([put(path, []), ...changes]);
    for (const { at, fileSize } of there) {
      Deno.writeFileSync(`${folder.path}/x`, new Uint8Array(fileSize));
      await nars.put(at, `${folder.path}/x`);
    }

    await recover({ metadata, nars, isAlive: () => false, log });

    const names = keeps.map(({ at }) => at);
    assert.deepEqual(await Array.fromAsync(nars.list(""), ({ at }) => at), names);
    assert.deepEqual((await metadata.findNar(narName))?.kept, keeps[0]);
    assert.deepEqual(await metadata.pendingFiles(), []);
    assert.equal((await metadata.stock()).pendingBytes, 0);
  });
}

Deno.test("recover: the pending objects of a living process stay", async () => {
  const metadata = new MemoryMetadataStore();
  await metadata.apply([put(path, []), publishing]);
  const isAlive = (owner: string) => owner === "dead";
  await recover({ metadata, nars: new MemoryNarStore(), isAlive, log });
  assert.equal((await metadata.pendingFiles()).length, 1);
});

const log = createLogger("error", { write: () => undefined });
