import assert from "node:assert/strict";
import { resolveSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";

Deno.test("log-format: for people on a terminal, JSON elsewhere, or as the option says", () => {
  const format = (isTerminal: boolean, args: readonly string[] = []) =>
    resolveSettings(inputsOf({ isTerminal, args })).settings["log-format"];
  assert.equal(format(true), "pretty");
  assert.equal(format(false), "json");
  assert.equal(format(true, ["--log-format", "json"]), "json");
  assert.equal(format(false, ["--log-format", "pretty"]), "pretty");
});
