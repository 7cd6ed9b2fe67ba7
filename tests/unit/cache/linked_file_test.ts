import assert from "node:assert/strict";
import { ForeignFile } from "../../../src/cache/import/foreign_file.ts";
import { LinkedFile } from "../../../src/cache/import/import_nar.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("linked file: one that a holder makes larger is read no further", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/nar`;
  Deno.writeFileSync(path, new Uint8Array(10));
  const { signal } = new AbortController();
  await using from = await ForeignFile.open({ folder: folder.path, path }, signal);
  const reservation = {
    bytes: 10,
    ledgerBytes: undefined,
    grow: () => false,
    kept() {},
    [Symbol.dispose]() {},
  };
  const space = { kept: () => Promise.resolve() };
  using file = new LinkedFile({ from, path: `${folder.path}/link`, space, reservation });
  assert.equal((await file.measured(signal)).fileSize, 10);

  Deno.truncateSync(path, 2 ** 40);
  await assert.rejects(file.measured(signal), { message: `Cannot read ${path}: it became larger` });
});
