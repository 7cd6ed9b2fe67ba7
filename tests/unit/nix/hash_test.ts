import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  formatSha256,
  isSha256,
  parseFileHash,
  parseNarHash,
  parseSha256,
  sha256FromDigest,
} from "../../../src/nix/hash.ts";

const DIGEST = createHash("sha256").digest();
const NIX32 = "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73";

const SPELLINGS: readonly string[] = [
  `sha256:${NIX32}`,
  `sha256:${DIGEST.toString("hex")}`,
  `sha256:${DIGEST.toString("hex").toUpperCase()}`,
  `sha256:${DIGEST.toString("base64")}`,
  `sha256-${DIGEST.toString("base64")}`,
];

const NO_SPELLINGS: readonly string[] = [
  "",
  NIX32,
  "sha256:",
  `sha256-${NIX32}`,
  `sha256: ${NIX32}`,
  `SHA256:${NIX32}`,
  `sha256:2${NIX32.slice(1)}`, // padding bits
  `sha256:${NIX32}\n`,
  `sha256:${NIX32.slice(1)}`,
  `sha256:${DIGEST.toString("hex").replace("e", "g")}`,
  `sha256-${DIGEST.toString("base64").replace("=", "")}`,
  `sha256-${DIGEST.toString("base64").replace("FU=", "FV=")}`, // trailing bits
  `sha256-${" ".repeat(44)}`,
  `sha512-${DIGEST.toString("base64")}`,
  `md5:${"0".repeat(32)}`,
];

Deno.test("hash: every spelling that Nix reads is the same SHA-256", () => {
  for (const text of SPELLINGS) {
    assert.equal(parseSha256(text), NIX32);
    assert.equal(parseNarHash(text), NIX32);
    assert.equal(parseFileHash(text), NIX32);
  }
});

Deno.test("hash: other text is refused", () => {
  for (const text of NO_SPELLINGS) {
    assert.throws(() => parseSha256(text), { name: "Failure", kind: "bad-request" }, text);
  }
});

Deno.test("hash: a digest and its text name the same SHA-256", () => {
  const sha256 = sha256FromDigest(DIGEST);

  assert.equal(formatSha256(sha256), `sha256:${NIX32}`);
  assert.equal(parseSha256(formatSha256(sha256)), sha256);
  assert.throws(() => sha256FromDigest(new Uint8Array(31)), { kind: "broken" });
});

Deno.test("hash: only the bare nix32 spelling of 256 bits is a SHA-256", () => {
  assert.equal(isSha256(NIX32), true);
  for (const text of ["", `sha256:${NIX32}`, `2${NIX32.slice(1)}`, `${NIX32}\n`, `${NIX32}0`]) {
    assert.equal(isSha256(text), false, text);
  }
});

Deno.test("hash: a message quotes at most 80 characters of the text", () => {
  assert.throws(() => parseSha256("x".repeat(1_000_000)), (thrown: Error) => {
    return thrown.message.length < 150;
  });
});
