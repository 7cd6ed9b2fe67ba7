import assert from "node:assert/strict";
import { recover } from "../../../src/space/recover.ts";
import type { Change } from "../../../src/metadata/metadata_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { hash, narOf, put, sha } from "../../support/metadata_rows.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const path = hash("a");
const { name: narName } = narOf(path);
const SIZE = 100;
const publishing: Change = { kind: "nar-publishing", narName, owner: "dead" };
const condemned: Change = { kind: "nar-condemned", narName, owner: "dead" };
const kept: Change = {
  kind: "nar-kept",
  narName,
  file: { fileHash: sha("kept"), fileSize: SIZE },
  atMs: 1,
};

/** What a crash left, and whether the file is kept then. */
const CASES: Readonly<Record<string, readonly [readonly Change[], file: number, keeps: boolean]>> =
  {
    "before a file was put in its place": [[publishing], 0, false],
    "between a file and its row": [[publishing], SIZE, false],
    "between giving a file up and removing it": [[kept, condemned], SIZE, false],
    "between removing a file and saying so": [[kept, condemned], 0, false],
    "before a whole file was replaced": [[kept, publishing], SIZE, true],
    "while a damaged file was replaced": [[kept, publishing], SIZE - 1, false],
  };

for (const [when, [changes, fileBytes, keeps]] of Object.entries(CASES)) {
  Deno.test(`recover: after a crash ${when} what is counted is what is there`, async () => {
    using folder = tempFolder();
    const nars = new MemoryNarStore();
    const metadata = new MemoryMetadataStore();
    await metadata.apply([put(path, []), ...changes]);
    if (fileBytes > 0) {
      Deno.writeFileSync(`${folder.path}/x`, new Uint8Array(fileBytes));
      await nars.publish(narName, `${folder.path}/x`);
    }

    await recover({ metadata, nars, isAlive: () => false, nowMs: () => 2, log });

    using stored = await nars.open(narName);
    assert.equal(stored?.fileSize, keeps ? SIZE : undefined);
    assert.equal((await metadata.findNar(narName))?.kept?.fileSize, stored?.fileSize);
    assert.deepEqual(await metadata.pendingFiles(), []);
    assert.equal((await metadata.stock()).pendingBytes, 0);
  });
}

Deno.test("recover: what a living process has under way is left to it", async () => {
  const metadata = new MemoryMetadataStore();
  await metadata.apply([put(path, []), publishing]);
  const isAlive = (owner: string) => owner === "dead";
  await recover({ metadata, nars: new MemoryNarStore(), isAlive, nowMs: () => 2, log });
  assert.equal((await metadata.pendingFiles()).length, 1);
});

const log = createLogger("error", { write: () => undefined });
