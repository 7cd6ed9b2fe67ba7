import assert from "node:assert/strict";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { prettySink } from "../../../src/telemetry/pretty.ts";

const HOSTILE = "a\x1b[2J\u009b31m\u202eb\u2066\u200f\u2028\x07\nERROR: forged";

Deno.test("pretty log: a stranger's text is one line, and acts on no terminal", async () => {
  let shown = "";
  const sink = await prettySink({ write: (line) => void (shown += line) });
  const log = createLogger("debug", sink);
  log.warn(HOSTILE, {
    path: HOSTILE,
    name: HOSTILE,
    error: HOSTILE,
    [HOSTILE]: 1,
    type: "Error",
    hash: HOSTILE,
  });
  log.info("next", { path: "/plain", count: 3 });

  const lines = shown.trimEnd().split("\n");
  assert.doesNotMatch(lines.join(""), /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u);
  assert.ok(lines.every((line) => !line.startsWith("ERROR")), shown);
  assert.ok(shown.includes("\\u001b[2J") && shown.includes("\\u202e"), shown);
  assert.match(lines.at(-1) ?? "", /INFO: next \{"path":"\/plain","count":3\}$/);
});
