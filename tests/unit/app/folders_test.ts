import assert from "node:assert/strict";
import process from "node:process";
import { prepareFolders } from "../../../src/app/folders.ts";
import { resolveSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";
import { tempFolder } from "../../support/temp_folder.ts";

const NOBODY = 65_534;

Deno.test("folders: one that can be written and not listed is a plain sentence", () => {
  using folder = tempFolder();
  const temp = `${folder.path}/temp`;
  const args = [`--cache-storage-local=${folder.path}/data`, `--cache-temp-path=${temp}`];
  const { settings } = resolveSettings(inputsOf({ args }));
  prepareFolders(settings);
  for (const each of [folder.path, `${folder.path}/data`, `${folder.path}/data/nar`]) {
    Deno.chmodSync(each, 0o777);
  }
  Deno.chmodSync(temp, 0o333);
  using cleanup = new DisposableStack();
  cleanup.defer(() => Deno.chmodSync(temp, 0o777));
  cleanup.use(withoutPrivileges());
  assert.throws(() => prepareFolders(settings), {
    name: "Failure",
    message: /^Cannot read directory .*\/temp: .*; give another with --cache-temp-path, or make/,
  });
});

/** Root may read everything. */
function withoutPrivileges(): Disposable {
  const before = process.geteuid?.();
  if (before === 0) process.seteuid?.(NOBODY);
  return { [Symbol.dispose]: () => void (before === 0 && process.seteuid?.(before)) };
}
