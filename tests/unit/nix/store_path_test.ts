import assert from "node:assert/strict";
import {
  hashOfBaseName,
  isBaseName,
  isStorePathHash,
  parseBaseName,
  parseStorePath,
} from "../../../src/nix/store_path.ts";

const HASH = "3acqrvb06vw0w3s9fa3wci433snbi2bg";
const BAD_REQUEST = { name: "Failure", kind: "bad-request" };

Deno.test("store path hash: 32 nix32 characters and nothing else", () => {
  assert.equal(isStorePathHash(HASH), true);
  const wrong = ["", HASH.slice(1), `${HASH}0`, HASH.toUpperCase(), `e${HASH.slice(1)}`];
  for (const text of [...wrong, `${HASH}\n`, `${HASH.slice(1)}/`, "../".repeat(11).slice(0, 32)]) {
    assert.equal(isStorePathHash(text), false, text);
  }
});

Deno.test("base name: a hash, a dash and a name that Nix allows", () => {
  for (const name of ["hello-2.12.1", "a", "A+b-c._?=", ".hidden", "x".repeat(211)]) {
    const baseName = parseBaseName(`${HASH}-${name}`);
    assert.equal(hashOfBaseName(baseName), HASH);
  }
});

Deno.test("base name: other text is refused", () => {
  const names = ["", "x".repeat(212), "a b", "a/b", "é", "a\n", "a\0", "~", "a%2f"];
  for (const text of ["", HASH, `${HASH}_a`, ...names.map((name) => `${HASH}-${name}`)]) {
    assert.equal(isBaseName(text), false, text);
    assert.throws(() => parseBaseName(text), BAD_REQUEST, text);
  }
});

Deno.test("store path: a base name below /nix/store", () => {
  assert.equal(parseStorePath(`/nix/store/${HASH}-a`), `${HASH}-a`);
  const wrong = [`/gnu/store/${HASH}-a`, `${HASH}-a`, `/nix/store/${HASH}-a/bin`, "/nix/store/"];
  for (const text of [...wrong, `/nix/store//${HASH}-a`, `/nix/storex${HASH}-a`]) {
    assert.throws(() => parseStorePath(text), BAD_REQUEST, text);
  }
});
