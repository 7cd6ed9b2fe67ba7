import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { readDatabase } from "../../../../src/app/doctor/read_database.ts";
import { checkDatabase } from "../../../../src/cli/doctor/back_end_checks.ts";
import { tempFolder } from "../../../support/temp_folder.ts";

Deno.test("doctor: a database of another program failed, and is no older one", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/db.sqlite`;
  {
    using other = new DatabaseSync(path);
    other.exec("CREATE TABLE narinfos (hash TEXT)");
  }

  const state = await readDatabase({ place: { kind: "sqlite", path }, isInUse: false });

  const [finding] = checkDatabase(path, state);
  assert.equal(finding?.mark, "failed");
  assert.match(finding?.fact ?? "", /is a database of another program$/);
});
