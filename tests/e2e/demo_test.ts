import assert from "node:assert/strict";
import denoJson from "../../deno.json" with { type: "json" };
import { tempFolder } from "../support/temp_folder.ts";

Deno.test("demo: without Nix or upstream a closure comes again, and no file stays", async () => {
  using folder = tempFolder();
  using made = tempFolder();
  const { command } = denoJson.tasks.demo;
  const { code, stdout } = await new Deno.Command(Deno.execPath(), {
    args: command.split(" ").slice(1),
    // No program is found.
    env: { PATH: folder.path, TMPDIR: made.path },
  }).output();

  const text = new TextDecoder().decode(stdout);
  assert.equal(code, 0, text);
  const [first = "", second = ""] = text.split("The upstream stops.");
  assert.match(first, /MISS +narinfo .*verified/);
  assert.equal(second.match(/^ +HIT .*verified/gm)?.length, 6);
  assert.doesNotMatch(second, /MISS/);
  assert.ok(text.includes(`its data in ${made.path}/`), text);
  assert.deepEqual([...Deno.readDirSync(made.path)], []);
});
