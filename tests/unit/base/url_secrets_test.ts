import assert from "node:assert/strict";
import fc from "fast-check";
import { withoutUrlSecrets } from "../../../src/base/url_secrets.ts";
import { checkProperty } from "../../support/property.ts";

const SHOWN: Readonly<Record<string, string>> = {
  "error for url (http://127.0.0.1:1/x.narinfo?X-Amz-Signature=S3): client error":
    "error for url (http://127.0.0.1:1/x.narinfo?(hidden)): client error",
  "see https://me:pass@cache.example/p.": "see https://cache.example/p.",
  "https://h/a@b?t=1, next http://u@x": "https://h/a@b?(hidden), next http://x",
  "no URL: a?b=c": "no URL: a?b=c",
  "redis://:pass@127.0.0.1:6379": "redis://127.0.0.1:6379",
};

for (const [text, shown] of Object.entries(SHOWN)) {
  Deno.test(`URLs in messages: "${text}" loses possible secrets`, () => {
    assert.equal(withoutUrlSecrets(text), shown);
  });
}

const word = fc.string({ unit: fc.constantFrom(..."abz09-_~"), minLength: 1, maxLength: 12 });

checkProperty(
  "URLs in messages: no password and no query is left, and nothing around them is lost",
  fc.property(fc.string(), word, word, word, (around, host, path, rest) => {
    const secret = `SECRET${rest}`;
    const text = `${around} http://me:${secret}@${host}/${path}?key=${secret} ${around}`;
    const shown = withoutUrlSecrets(text);
    assert.ok(!shown.includes("SECRET"));
    assert.ok(shown.includes(`http://${host}/${path}?(hidden)`));
  }),
);
