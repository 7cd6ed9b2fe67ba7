import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { compileCopy, NO_DENORT } from "../support/compiled.ts";
import { executableTest } from "../support/executable.ts";
import { programsMissing } from "../support/program.ts";

executableTest(
  NO_DENORT || programsMissing("cp"),
  "executable: it is the same bytes, whenever and wherever it is built",
  async (executable) => {
    using copy = compileCopy();

    assert.equal(await digestOf(copy.executable), await digestOf(executable));
  },
);

async function digestOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  const file = await Deno.open(path);
  for await (const bytes of file.readable) hash.update(bytes);
  return hash.digest("hex");
}
