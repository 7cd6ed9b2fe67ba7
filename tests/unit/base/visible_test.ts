import assert from "node:assert/strict";
import fc from "fast-check";
import { visible, visibleLines } from "../../../src/base/visible.ts";
import { checkProperty } from "../../support/property.ts";

const SAMPLES: Readonly<Record<string, string>> = {
  "plain ä 日本 \\u001b €": "plain ä 日本 \\u001b €",
  "\x1b[2J\x07": "\\u001b[2J\\u0007",
  "\u009b31m": "\\u009b31m",
  "a\u202eb\u2066c\u200fd\u061c": "a\\u202eb\\u2066c\\u200fd\\u061c",
  "a\u2028b\u2029c\u200bd\ufeff": "a\\u2028b\\u2029c\\u200bd\\ufeff",
  "\u{e0041}\x7f\0\t\r": "\\u{e0041}\\u007f\\u0000\\u0009\\u000d",
};

for (const [text, shown] of Object.entries(SAMPLES)) {
  Deno.test(`visible: the shown text is ${JSON.stringify(shown)}`, () => {
    assert.equal(visible(text), shown);
    assert.equal(visibleLines(`${text}\n${text}`), `${shown}\n${shown}`);
    assert.equal(visible(`${text}\n`), `${shown}\\u000a`);
  });
}

checkProperty(
  "visible: any text as shown acts on no terminal, and turns no text around",
  fc.property(fc.string({ unit: "binary" }), (text) => {
    assert.doesNotMatch(visible(text), /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u);
    assert.doesNotMatch(visibleLines(text).replaceAll("\n", ""), /[\p{Cc}\p{Bidi_Control}]/u);
    assert.equal(visible(visible(text)), visible(text));
  }),
);
