import assert from "node:assert/strict";
import { playRuntime } from "../../../src/runtime/current.ts";
import { type Files, SYSTEM_FILES } from "../../../src/runtime/files.ts";
import { moveDurably } from "../../../src/storage/local/durable_move.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const WAYS = { "one file system": false, "two file systems": true } as const;

for (const [way, isAcross] of Object.entries(WAYS)) {
  Deno.test(`durable move: on ${way} the bytes are synced before the name`, async () => {
    using folder = tempFolder();
    const [from, store] = [`${folder.path}/growing`, `${folder.path}/store`];
    Deno.mkdirSync(store);
    Deno.writeTextFileSync(from, "the bytes");
    const steps: string[] = [];
    {
      using _watch = watchFiles(isAcross, (what, path) => {
        const isNamed = namesIn(store).includes("nar");
        steps.push(
          `${what} ${path === store ? "folder" : "file"}, ${isNamed ? "named" : "no name"}`,
        );
      });
      await moveDurably(from, `${store}/nar`);
    }

    assert.deepEqual(steps, [
      ...(isAcross ? ["sync file, no name"] : []),
      ...["sync file, no name", "rename file, no name", "sync folder, named"],
    ]);
    assert.equal(Deno.readTextFileSync(`${store}/nar`), "the bytes");
    assert.deepEqual([namesIn(store), namesIn(folder.path)], [["nar"], ["store"]]);
  });
}

function namesIn(folder: string): readonly string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name);
}

/**
 * Tells each sync and each rename, until disposed of. `isAcross`: the first rename would leave its
 * file system.
 */
function watchFiles(
  isAcross: boolean,
  told: (what: "sync" | "rename", path: string) => void,
): Disposable {
  let refuses = isAcross;
  const files: Files = {
    ...SYSTEM_FILES,
    async open(path, options) {
      const file = await SYSTEM_FILES.open(path, options);
      const sync = file.sync.bind(file);
      return Object.assign(file, {
        sync: async () => {
          told("sync", path);
          await sync();
        },
      });
    },
    async rename(from, to) {
      if (refuses) {
        refuses = false;
        throw Object.assign(new Error("another file system"), { code: "EXDEV" });
      }
      told("rename", from);
      await SYSTEM_FILES.rename(from, to);
    },
  };
  return playRuntime({ files });
}
