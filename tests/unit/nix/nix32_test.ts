import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { encodeNix32 } from "../../../src/nix/nix32.ts";

Deno.test("nix32: a SHA-256 is spelled as nix-hash spells it", () => {
  // As `nix-hash --type sha256 --to-base32` spells the SHA-256 of nothing.
  const nothing = "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73";
  assert.equal(encodeNix32(createHash("sha256").digest()), nothing);
});

Deno.test("nix32: no bytes are no characters", () => {
  assert.equal(encodeNix32(new Uint8Array()), "");
});
