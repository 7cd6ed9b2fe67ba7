import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Failure } from "../../../src/base/failure.ts";
import { decodeNix32, encodeNix32 } from "../../../src/nix/nix32.ts";

// As `nix-hash --type sha256 --to-base32` spells the SHA-256 of nothing.
const NOTHING = "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73";

Deno.test("nix32: a SHA-256 is spelled as nix-hash spells it", () => {
  const digest = createHash("sha256").digest();

  assert.equal(encodeNix32(digest), NOTHING);
  assert.deepEqual(decodeNix32(NOTHING, 32), new Uint8Array(digest));
});

Deno.test("nix32: no bytes are no characters", () => {
  assert.equal(encodeNix32(new Uint8Array()), "");
  assert.deepEqual(decodeNix32("", 0), new Uint8Array());
});

Deno.test("nix32: padding bits that are not zero are refused", () => {
  assert.deepEqual(decodeNix32("7z", 1), new Uint8Array([255]));
  for (const text of ["8z", "zz", "g0"]) {
    assert.throws(() => decodeNix32(text, 1), { kind: "bad-request", message: /padding/ });
  }
});

Deno.test("nix32: letters that Nix leaves out, capitals and other text are refused", () => {
  for (const text of ["0e", "0o", "0u", "0t", "0A", "0 ", "0-", "0é", "0\u{100}", "0\0"]) {
    assert.throws(() => decodeNix32(text, 1), { kind: "bad-request", message: /alphabet/ });
  }
});

Deno.test("nix32: another length is refused", () => {
  for (const text of ["", "0", "000"]) {
    assert.throws(() => decodeNix32(text, 1), Failure);
  }
});
