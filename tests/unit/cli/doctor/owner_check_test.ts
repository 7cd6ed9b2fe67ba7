import assert from "node:assert/strict";
import { newStorageId } from "../../../../src/base/storage_id.ts";
import { checkOwner } from "../../../../src/cli/doctor/back_end_checks.ts";
import { LocalMarks } from "../../../../src/storage/local/local_marks.ts";
import { tempFolder } from "../../../support/temp_folder.ts";

Deno.test("doctor: NAR files of another database failed, and it is named", async () => {
  using folder = tempFolder();
  const places = {
    database: { kind: "sqlite", path: "/elsewhere/db.sqlite" },
    nars: { kind: "local", folder: `${folder.path}/nar` },
  } as const;
  const missing = { kind: "missing" } as const;
  assert.deepEqual(await checkOwner(places, missing), [], "nobody's");
  const mark = { id: newStorageId(), database: "postgres://db/larder" };
  await new LocalMarks(places.nars.folder).claim(mark);
  const [finding, ...more] = await checkOwner(places, missing);
  assert.deepEqual([finding?.mark, finding?.subject, more], ["failed", "nar files", []]);
  assert.match(finding?.fact ?? "", /another database \(postgres:\/\/db\/larder\)/);
  const health = {
    storageId: mark.id,
    ...{ damage: [], areSumsRight: true, samples: [] },
    stock: { keptBytes: 0, keptFiles: 0, pendingBytes: 0, protectedBytes: 0, reservedBytes: 0 },
  };
  assert.deepEqual(await checkOwner(places, { kind: "healthy", health }), [], "its own");
});
