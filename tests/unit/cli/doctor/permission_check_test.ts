import assert from "node:assert/strict";
import { checkPermissions } from "../../../../src/cli/doctor/permission_check.ts";
import { testUnless } from "../../../support/program.ts";
import { tempFolder } from "../../../support/temp_folder.ts";

const NO_ROOT = Deno.uid() === 0 ? "" : "only root may give files away";

/** A storage as larder makes it. */
function storage() {
  const folder = tempFolder();
  const { path } = folder;
  for (const name of ["nar", "nar/0a", "tmp"]) Deno.mkdirSync(`${path}/${name}`);
  Deno.writeTextFileSync(`${path}/db.sqlite`, "");
  Deno.writeTextFileSync(`${path}/secret-key`, "", { mode: 0o600 });
  const places = {
    storage: path,
    written: [`${path}/db.sqlite`, `${path}/db.sqlite-wal`],
    sharded: [`${path}/nar`, `${path}/tmp`],
    secrets: [`${path}/secret-key`],
  };
  return { path, places, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

Deno.test("doctor: a storage of one user with a closed key is ok", () => {
  using scene = storage();
  assert.deepEqual(checkPermissions(scene.places).map(({ mark }) => mark), ["ok"]);
});

Deno.test("doctor: a storage that is not there is a warning", () => {
  using scene = storage();
  const places = { ...scene.places, storage: `${scene.path}/none` };
  assert.deepEqual(checkPermissions(places).map(({ mark }) => mark), ["warning"]);
});

Deno.test("doctor: a storage that is a file failed", () => {
  using scene = storage();
  const places = { ...scene.places, storage: `${scene.path}/db.sqlite` };
  assert.deepEqual(checkPermissions(places).map(({ mark }) => mark), ["failed"]);
});

testUnless(NO_ROOT, "doctor: a folder of another user in the storage failed", async () => {
  using scene = storage();
  Deno.chownSync(`${scene.path}/nar/0a`, 1_000, 1_000);
  const [finding] = checkPermissions(scene.places);
  assert.equal(finding?.mark, "failed");
  assert.ok(finding?.fact.startsWith(`${scene.path}/nar/0a: `), finding?.fact);
  assert.ok(finding?.advice?.startsWith(`chown -R 0:`), finding?.advice);
});

Deno.test("doctor: a folder closed to its owner failed", () => {
  using scene = storage();
  Deno.chmodSync(`${scene.path}/tmp`, 0o500);
  assert.deepEqual(checkPermissions(scene.places).map(({ mark }) => mark), ["failed"]);
});

Deno.test("doctor: a key that every user may open is a warning with the command", () => {
  using scene = storage();
  Deno.chmodSync(`${scene.path}/secret-key`, 0o644);
  const [finding] = checkPermissions(scene.places);
  assert.deepEqual([finding?.mark, finding?.advice], [
    "warning",
    `chmod o-rwx ${scene.path}/secret-key`,
  ]);
});
