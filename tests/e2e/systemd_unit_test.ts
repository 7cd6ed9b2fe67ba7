import assert from "node:assert/strict";
import { testUnless } from "../support/program.ts";
import { runLarder } from "../support/run_larder.ts";
import {
  exposureOf,
  problemsWith,
  SYSTEMD_MISSING,
  type UnitFile,
  unitFile,
} from "../support/systemd.ts";
import { tempFolder } from "../support/temp_folder.ts";

/** Of the scale of `systemd-analyze security`, from 0 (nothing allowed) to 10. */
const EXPOSURE_MAX = 1.5;

testUnless(SYSTEMD_MISSING, "systemd unit: systemd finds nothing wrong with it", async () => {
  using unit = await unitFor("/bin/true");

  assert.equal(problemsWith(unit), "");
});

testUnless(SYSTEMD_MISSING, "systemd unit: it leaves larder next to no privileges", async () => {
  using unit = await unitFor("/bin/true");

  assert.ok(exposureOf(unit) <= EXPOSURE_MAX, String(exposureOf(unit)));
});

testUnless(
  SYSTEMD_MISSING,
  "systemd unit: a path with spaces, dollars and per cents is one word",
  async () => {
    using folder = tempFolder();
    const path = `${folder.path}/a $HOME 100%n b`;
    Deno.copyFileSync("/bin/true", path);
    using unit = await unitFor(path);

    assert.equal(problemsWith(unit), "");
  },
);

Deno.test("systemd unit: larder alone prints it, for itself", async () => {
  const { status, out } = await runLarder(["systemd-unit"], { executable: "/opt/larder" });

  assert.equal(status, 0);
  assert.match(out, /^ExecStart=\/opt\/larder serve$/m);
  assert.match(out, /^Type=notify$/m);
});

async function unitFor(executable: string): Promise<UnitFile> {
  const { out } = await runLarder(["systemd-unit"], { executable });
  return unitFile(out);
}
