import assert from "node:assert/strict";
import { tempFolder } from "../../support/temp_folder.ts";

const SUPPORT = new URL("../../support/program.ts", import.meta.url);

/** One needs curl, the other one only runs where curl is missing. */
const ASKING = `import { isInstalled, programsMissing, testUnless } from "${SUPPORT}";
  testUnless(programsMissing("curl"), "it needs it", async () => {});
  Deno.test("it does not", () => {
    if (isInstalled("curl")) throw new Error("curl is here");
    if (!isInstalled("zstd")) throw new Error("zstd is not here");
  });`;

Deno.test("without: the files that ask for a program run where it alone is missing", async () => {
  using folder = tempFolder();
  const path = `${folder.path}/bin`;
  Deno.mkdirSync(path);
  for (const program of ["curl", "zstd"]) {
    Deno.writeTextFileSync(`${path}/${program}`, "#!/bin/sh\n", { mode: 0o755 });
  }
  const tests = `${folder.path}/tests`;
  Deno.mkdirSync(tests);
  Deno.writeTextFileSync(`${tests}/asking_test.ts`, ASKING);
  Deno.writeTextFileSync(`${tests}/other_test.ts`, 'Deno.test("no", () => { throw "it ran"; });');

  const without = async (...words: readonly string[]) => {
    const { code, stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "scripts/without.ts", "--tests", tests, ...words],
      env: { PATH: `${path}:${Deno.env.get("PATH")}`, NO_COLOR: "1" },
    }).output();
    return { code, text: new TextDecoder().decode(stdout) };
  };

  const curl = await without("curl");
  assert.match(curl.text, /^curl +1 passed, 0 failed, 1 skipped$/m);
  assert.match(curl.text, /\n1 passed, 0 failed, 1 skipped\n$/);
  assert.equal(curl.code, 0);

  const zstd = await without("zstd");
  assert.match(zstd.text, /^zstd .*: no test asks for it$/m);
});
