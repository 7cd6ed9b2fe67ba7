import assert from "node:assert/strict";
import { fingerprintOf } from "../../../src/nix/fingerprint.ts";
import { parseNarHash } from "../../../src/nix/hash.ts";
import { parseBaseName } from "../../../src/nix/store_path.ts";

const NAR_HASH = "sha256:0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73";
const STORE_PATH = `/nix/store/${"0".repeat(32)}-x`;
const A = parseBaseName(`${"a".repeat(32)}-a`);
const B = parseBaseName(`${"b".repeat(32)}-b`);
const signed = { storePath: STORE_PATH, narHash: parseNarHash(NAR_HASH), narSize: 2 ** 33 + 1 };

Deno.test("fingerprint: format, path, hash, size and full references", () => {
  const fingerprint = fingerprintOf({ ...signed, references: [A, B] });

  const references = `/nix/store/${A},/nix/store/${B}`;
  assert.equal(fingerprint, `1;${STORE_PATH};${NAR_HASH};8589934593;${references}`);
});

Deno.test("fingerprint: no references end it with a semicolon", () => {
  assert.ok(fingerprintOf({ ...signed, references: [] }).endsWith(";8589934593;"));
});

Deno.test("fingerprint: references count as a set, as they do for a Nix client", () => {
  const expected = fingerprintOf({ ...signed, references: [A, B] });

  assert.equal(fingerprintOf({ ...signed, references: [B, A] }), expected);
  assert.equal(fingerprintOf({ ...signed, references: [A, A, B] }), expected);
});
