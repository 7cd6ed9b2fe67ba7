import assert from "node:assert/strict";
import { PERMISSIONS } from "../support/larder_process.ts";
import { NCPS_UNAVAILABLE, ncpsStorage } from "../support/ncps_storage.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { withoutProgress } from "../support/run_larder.ts";
import { tempFolder } from "../support/temp_folder.ts";

/** Without this right the modes of files hold for root, too. */
const BOUND = Deno.uid() === 0
  ? ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
  : [];

testUnless(
  NCPS_UNAVAILABLE || (BOUND.length > 0 ? programsMissing("setpriv") : ""),
  "import ncps: the right to read the files of a stopped one is enough",
  async () => {
    using from = await ncpsStorage("whole");
    using storage = tempFolder();
    using temporary = tempFolder();
    for (const end of ["-wal", "-shm"]) {
      try {
        Deno.removeSync(from.databasePath + end);
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    }
    const databaseFolder = from.databasePath.slice(0, from.databasePath.lastIndexOf("/"));
    Deno.chmodSync(from.databasePath, 0o444);
    Deno.chmodSync(databaseFolder, 0o555);
    try {
      const larder = [
        Deno.execPath(),
        "run",
        "--quiet",
        "--cached-only",
        ...PERMISSIONS,
        "main.ts",
      ];
      const words = ["import", "ncps", from.folder, "--cache-storage-local", storage.path];
      const [program = "", ...args] = [...BOUND, ...larder, ...words];
      const env = { TMPDIR: temporary.path };
      const { code, stdout, stderr } = await new Deno.Command(program, { args, env }).output();
      const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));

      assert.deepEqual([code, withoutProgress(err ?? "")], [0, ""]);
      assert.match(out ?? "", /imported 11 paths/);
      assert.deepEqual([...Deno.readDirSync(temporary.path)], [], "the copy has gone");
    } finally {
      Deno.chmodSync(databaseFolder, 0o755);
    }
  },
);
