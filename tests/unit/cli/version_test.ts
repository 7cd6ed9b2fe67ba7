import assert from "node:assert/strict";
import denoJson from "../../../deno.json" with { type: "json" };
import { runLarder } from "../../support/run_larder.ts";

Deno.test("version: it tells commit, Deno and platform, for a report of a problem", async () => {
  const { status, out } = await runLarder(["version"]);

  assert.equal(status, 0);
  assert.deepEqual(out.split("\n"), [
    `larder ${denoJson.version}`,
    "commit 0123abc",
    "Deno 2.6.8",
    "platform x86_64-unknown-linux-gnu",
    "",
  ]);
});
