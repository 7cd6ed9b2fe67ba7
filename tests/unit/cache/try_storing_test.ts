import assert from "node:assert/strict";
import { tryStoring } from "../../../src/cache/nar/try_storing.ts";
import { files, playRuntime } from "../../../src/runtime/current.ts";
import type { Files } from "../../../src/runtime/files.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { filesBelow } from "../../support/storage_look.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const LIMIT_BYTES = 4 << 20;

/** The files of a disk that takes no byte beyond the limit, as `ulimit -f` or FAT32 do. */
function limited(inner: Files): Files {
  const openSync: Files["openSync"] = (path, options) => {
    const file = inner.openSync(path, options);
    let position = 0;
    const seekSync = (offset: number, whence: Deno.SeekMode) =>
      position = file.seekSync(offset, whence);
    const writeSync = (from: Uint8Array) => {
      if (position + from.length > LIMIT_BYTES) throw new Error("File too large (os error 27)");
      return file.writeSync(from);
    };
    return Object.assign(Object.create(file), {
      ...{ seekSync, writeSync, [Symbol.dispose]: () => file.close() },
    });
  };
  return Object.assign(Object.create(inner), { openSync });
}

Deno.test("trial: a file that is longer than the disk allows is not tried with a small one", async () => {
  using folder = tempFolder();
  await using nars = new MemoryNarStore();
  const deps = { metadata: new MemoryMetadataStore(), nars, folder: folder.path };
  using _runtime = playRuntime({ files: limited(files) });
  await tryStoring(deps, LIMIT_BYTES);
  await assert.rejects(tryStoring(deps, LIMIT_BYTES + 1), /File too large/);
  assert.equal(filesBelow(folder.path).size, 0);
});
