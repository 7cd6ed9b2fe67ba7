import assert from "node:assert/strict";
import denoJson from "../../../deno.json" with { type: "json" };
import { tempFolder } from "../../support/temp_folder.ts";

const PROGRAM = new URL("../../support/program.ts", import.meta.url);

Deno.test("tests: the last lines name each skipped one with its missing program", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/a_test.ts`;
  Deno.writeTextFileSync(
    path,
    `import { programsMissing, testUnless } from "${PROGRAM}";
    testUnless(programsMissing("curl"), "it runs it", async () => {});
    testUnless("", "it runs Deno", async () => {});`,
  );
  const words = denoJson.tasks.test.command.split(" ").slice(1);
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: [...words, path],
    env: { REQUIRE_ALL_BACKENDS: "", PATH: folder.path },
  }).output();

  const text = new TextDecoder().decode(stdout);
  assert.equal(code, 0, text);
  const excuse = "curl is not installed (Debian: apt install curl)";
  const last = `Skipped:\n  it runs it (skipped: ${excuse})\n1 passed, 0 failed, 1 skipped\n`;
  assert.ok(text.endsWith(last), text);
});
