import assert from "node:assert/strict";
import { warnOfOpenKeys } from "../../../src/app/key_files.ts";
import type { Facts } from "../../../src/base/failure.ts";
import { type EventKind, EVENTS } from "../../../src/telemetry/events.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("key files: each that others can read is warned of, with what to do", async () => {
  using folder = tempFolder();
  const modes = [0o600, 0o640, 0o644, 0o604, 0o602, 0o400, 0o444];
  const paths = modes.map((mode) => {
    const path = `${folder.path}/${mode.toString(8)}`;
    Deno.writeTextFileSync(path, "secret");
    Deno.chmodSync(path, mode);
    return path;
  });
  const warnings: Facts[] = [];
  const event = (kind: EventKind, facts: Facts = {}) => void warnings.push({ kind, ...facts });
  const warned = warnOfOpenKeys([undefined, `${folder.path}/none`, ...paths], { event });
  assert.deepEqual(warnings, [], "the start waits for no disk");
  await warned;
  assert.deepEqual(
    warnings,
    ["644", "604", "602", "444"].map((mode) => {
      const path = `${folder.path}/${mode}`;
      return { kind: "key-file-open", path, mode: `0${mode}` };
    }),
  );
  assert.match(EVENTS["key-file-open"].hint ?? "", /chmod o-rwx/);
});
