import assert from "node:assert/strict";
import { ownCertificates, upstreamSettings } from "../../../src/app/upstream_settings.ts";
import type { Settings } from "../../../src/config/options.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { files, playRuntime } from "../../../src/runtime/current.ts";
import { inputsOf } from "../../support/config_inputs.ts";
import { PlayedTime } from "../../support/played_time.ts";

for (
  const [option, read] of [
    ["--netrc-file", (settings) => upstreamSettings(settings, "larder/test")],
    ["--cache-upstream-ca-file", ownCertificates],
  ] as const satisfies readonly (readonly [string, (settings: Settings) => Promise<unknown>])[]
) {
  Deno.test(`upstream settings: a ${option} that never answers ends the start with its path`, async () => {
    const { settings } = await readSettings(inputsOf({ args: [option, "/gone/file"] }));
    using time = new PlayedTime();
    const hung = { ...files, stat: () => new Promise<never>(() => {}) };
    using _played = playRuntime({ files: hung });
    const message =
      `Cannot use ${option} /gone/file: the file system did not answer within 5 seconds`;
    const failed = assert.rejects(read(settings), { name: "Failure", message });
    await time.advance(5_000);
    await failed;
  });
}
