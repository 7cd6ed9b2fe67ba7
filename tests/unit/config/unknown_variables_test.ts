import assert from "node:assert/strict";
import { resolveSettings } from "../../../src/config/settings.ts";
import { inputsOf } from "../../support/config_inputs.ts";

const warningsWith = (env: Readonly<Record<string, string>>) =>
  resolveSettings(inputsOf({ env })).warnings;

Deno.test("unknown variables: one that begins like ours is a warning, with the likely name", () => {
  assert.deepEqual(warningsWith({ CACHE_UPSTREAM_UR: "https://a", SERVER_PORT: "1", HOME: "/h" }), [
    "CACHE_UPSTREAM_UR: unknown variable, did you mean CACHE_UPSTREAM_URL?",
    "SERVER_PORT: unknown variable; larder does not read it",
  ]);
  assert.deepEqual(warningsWith({ LARDER_CONFIG: "/x", CACHE_FROBNICATE: "1", CACHE_EMPTY: "" }), [
    "CACHE_FROBNICATE: unknown variable; larder does not read it",
    "LARDER_CONFIG: unknown variable; larder does not read it",
  ]);
});

Deno.test("unknown variables: those of others, or read elsewhere, are no warning", () => {
  assert.deepEqual(
    warningsWith({
      LARDER_SERVER: "unix:/s",
      LARDER_TOKEN: "t",
      LARDER_TOKEN_FILE: "/t",
      OTEL_SERVICE_NAME: "s",
      CACHE_DIRECTORY: "/var/cache/larder",
      LARDER_SERVICE_HOST: "10.0.0.1",
      LARDER_SERVICE_PORT_HTTP: "8501",
      LARDER_PORT: "tcp://10.0.0.1:8501",
      LARDER_PORT_8501_TCP_ADDR: "10.0.0.1",
      PATH: "/bin",
    }),
    [],
  );
});
