import assert from "node:assert/strict";
import { programMissing, testUnless } from "../support/program.ts";
import { runLarder } from "../support/run_larder.ts";
import { tempFolder } from "../support/temp_folder.ts";

const SYSTEMD_MISSING = programMissing("systemd-analyze", "systemd");

/** Of the scale of `systemd-analyze security`, from 0 (nothing allowed) to 10. */
const EXPOSURE_MAX = 1.5;

testUnless(SYSTEMD_MISSING, "systemd unit: systemd finds nothing wrong with it", async () => {
  using unit = await unitFor("/bin/true");

  const { code, text } = analyze(["verify", "--man=no", unit.path]);

  assert.equal(text, "");
  assert.equal(code, 0);
});

testUnless(SYSTEMD_MISSING, "systemd unit: it leaves larder next to no privileges", async () => {
  using unit = await unitFor("/bin/true");

  const { text } = analyze(["security", "--offline=true", unit.path]);

  const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(text)?.[1]);
  assert.ok(exposure <= EXPOSURE_MAX, text);
});

testUnless(
  SYSTEMD_MISSING,
  "systemd unit: a path with spaces, dollars and per cents is one word",
  async () => {
    using folder = tempFolder();
    const path = `${folder.path}/a $HOME 100%n b`;
    Deno.copyFileSync("/bin/true", path);
    using unit = await unitFor(path);

    const { code, text } = analyze(["verify", "--man=no", unit.path]);

    assert.equal(text, "");
    assert.equal(code, 0);
  },
);

Deno.test("systemd unit: larder alone prints it, for itself", async () => {
  const { status, out } = await runLarder(["systemd-unit"], { executable: "/opt/larder" });

  assert.equal(status, 0);
  assert.match(out, /^ExecStart=\/opt\/larder serve$/m);
  assert.match(out, /^Type=notify$/m);
});

async function unitFor(executable: string): Promise<Disposable & { readonly path: string }> {
  const folder = tempFolder();
  const path = `${folder.path}/larder.service`;
  const { out } = await runLarder(["systemd-unit"], { executable });
  Deno.writeTextFileSync(path, out);
  return { path, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

function analyze(args: readonly string[]): { readonly code: number; readonly text: string } {
  const command = new Deno.Command("systemd-analyze", {
    args: [...args],
    env: { SYSTEMD_PAGER: "", SYSTEMD_COLORS: "0" },
  });
  const { code, stdout, stderr } = command.outputSync();
  const decoder = new TextDecoder();
  return { code, text: decoder.decode(stdout) + decoder.decode(stderr) };
}
