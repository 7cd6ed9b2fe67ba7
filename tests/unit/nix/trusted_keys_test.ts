import assert from "node:assert/strict";
import { fingerprintOf } from "../../../src/nix/fingerprint.ts";
import type { Narinfo } from "../../../src/nix/narinfo.ts";
import { parseNarinfo } from "../../../src/nix/narinfo_parse.ts";
import { generateSecretKey, type Signature } from "../../../src/nix/signature.ts";
import { TrustedKeys } from "../../../src/nix/trusted_keys.ts";
import { NARINFO_FIXTURES } from "../../support/narinfo_fixtures.ts";

const [, text] = NARINFO_FIXTURES[0] ?? ["", ""];
const narinfo = parseNarinfo(text);
const fingerprint = fingerprintOf(narinfo);
const signedBy = (...signatures: readonly Signature[]): Narinfo => ({ ...narinfo, signatures });

Deno.test("trusted keys: one signature of one key is enough, whatever else is there", () => {
  const [ours, other] = [generateSecretKey("ours"), generateSecretKey("other")];
  const trusted = new TrustedKeys([generateSecretKey("x").publicKey, ours.publicKey]);

  const signer = trusted.signerOf(signedBy(other.sign(fingerprint), ours.sign(fingerprint)));

  assert.equal(signer, ours.publicKey);
});

Deno.test("trusted keys: all keys of one name are tried", () => {
  const [first, second] = [generateSecretKey("same"), generateSecretKey("same")];
  const trusted = new TrustedKeys([first.publicKey, second.publicKey]);

  assert.equal(trusted.signerOf(signedBy(first.sign(fingerprint))), first.publicKey);
  assert.equal(trusted.signerOf(signedBy(second.sign(fingerprint))), second.publicKey);
});

Deno.test("trusted keys: a right name with a wrong key, or over another text, is no signer", () => {
  const [trustedKey, impostor] = [generateSecretKey("same"), generateSecretKey("same")];
  const trusted = new TrustedKeys([trustedKey.publicKey]);

  assert.equal(trusted.signerOf(signedBy()), undefined);
  assert.equal(trusted.signerOf(signedBy(impostor.sign(fingerprint))), undefined);
  assert.equal(trusted.signerOf(signedBy(trustedKey.sign(fingerprint + " "))), undefined);
});

Deno.test("trusted keys: a signature under another key's name is no signature of that key", () => {
  const key = generateSecretKey("a");
  const renamed = { ...key.sign(fingerprint), keyName: "b" };

  assert.equal(new TrustedKeys([key.publicKey]).signerOf(signedBy(renamed)), undefined);
});

Deno.test("trusted keys: an empty pool trusts nothing", () => {
  assert.equal(new TrustedKeys([]).signerOf(narinfo), undefined);
});
