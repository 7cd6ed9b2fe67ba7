import assert from "node:assert/strict";
import { KeptNars } from "../../../src/cache/kept/kept_nars.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
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
