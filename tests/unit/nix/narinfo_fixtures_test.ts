import assert from "node:assert/strict";
import { Failure } from "../../../src/base/failure.ts";
import { parseNarinfo } from "../../../src/nix/narinfo_parse.ts";
import { parsePublicKey } from "../../../src/nix/signature.ts";
import { TrustedKeys } from "../../../src/nix/trusted_keys.ts";
import { FIXTURE_KEY, NARINFO_FIXTURES } from "../../support/narinfo_fixtures.ts";

const trustedKeys = new TrustedKeys([parsePublicKey(FIXTURE_KEY)]);
const SIGNED_KEYS: readonly string[] = ["StorePath", "NarHash", "NarSize", "References"];
const REPLACEMENTS: readonly string[] = [
  "",
  "0",
  "1",
  "9",
  "a",
  "Z",
  " ",
  ":",
  "/",
  "\n",
  "\t",
  "é",
];

Deno.test("narinfos of cache.nixos.org verify with its key", () => {
  assert.ok(NARINFO_FIXTURES.length >= 5);
  for (const [storePathHash, text] of NARINFO_FIXTURES) {
    const narinfo = parseNarinfo(text);

    assert.equal(trustedKeys.signerOf(narinfo)?.text, FIXTURE_KEY);
    assert.equal(narinfo.storePathHash, storePathHash);
  }
});

for (const [storePathHash, text] of NARINFO_FIXTURES) {
  Deno.test(`narinfo ${storePathHash}: a change of any signed character does not verify`, () => {
    let tried = 0;
    for (const changed of changesOfSignedLines(text)) {
      assert.equal(verifies(changed), false, changed);
      tried++;
    }
    assert.ok(tried > 2_000);
  });

  Deno.test(`narinfo ${storePathHash}: no changed character of its Sig verifies`, () => {
    const start = text.indexOf("Sig: ");
    for (let at = start; at < text.length; at++) {
      for (const changed of changesAt(text, at)) assert.equal(verifies(changed), false, changed);
    }
  });

  Deno.test(`narinfo ${storePathHash}: cut anywhere it does not verify`, () => {
    for (let end = 0; end < text.length; end++) assert.equal(verifies(text.slice(0, end)), false);
  });
}

/** Fails the test when the parser throws anything but "corrupt". */
function verifies(text: string): boolean {
  try {
    return trustedKeys.signerOf(parseNarinfo(text)) !== undefined;
  } catch (thrown) {
    assert.ok(thrown instanceof Failure && thrown.kind === "corrupt", String(thrown));
    return false;
  }
}

function* changesOfSignedLines(text: string): Generator<string> {
  for (const key of SIGNED_KEYS) {
    const start = text.indexOf(`${key}: `);
    const end = text.indexOf("\n", start);
    for (let at = start; at < end; at++) yield* changesAt(text, at);
  }
}

/**
 * The text with one character replaced by another, removed, or there twice. A space twice is
 * left out: between references Nix takes any number of them for one.
 */
function* changesAt(text: string, at: number): Generator<string> {
  const original = text.charAt(at);
  const before = text.slice(0, at);
  const after = text.slice(at + 1);
  const neighbour = String.fromCharCode(original.charCodeAt(0) ^ 1);
  const twice = original === " " ? "" : original + original;
  for (const replacement of [...REPLACEMENTS, neighbour, twice]) {
    if (replacement !== original) yield before + replacement + after;
  }
}
