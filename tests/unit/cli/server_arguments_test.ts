import assert from "node:assert/strict";
import { splitServerArguments } from "../../../src/cli/server_arguments.ts";
import { runLarder } from "../../support/run_larder.ts";

const PATH = `/nix/store/${"a".repeat(32)}-app`;

Deno.test("flags: an unknown one is named, and not the value behind it", async () => {
  for (const words of [["export", "file:///out", PATH], ["import", "cache", "file:///in"]]) {
    const ran = await runLarder([...words, "--serve", "http://localhost"]);

    assert.equal(ran.status, 2);
    assert.match(ran.err, /^larder: --serve: unknown flag/);
  }
});

Deno.test("flags: those of the server go to it with their values, in either spelling", () => {
  const words = ["a", "--cache-max-size", "1G", "--no-prometheus-enabled", "b", "--log-level=warn"];

  assert.deepEqual(splitServerArguments({}, words), {
    own: ["a", "b"],
    server: ["--cache-max-size", "1G", "--no-prometheus-enabled", "--log-level=warn"],
  });
});
