import assert from "node:assert/strict";
import { UploadTrust } from "../../../src/cache/upload/narinfo_uploads.ts";
import { fingerprintOf } from "../../../src/nix/fingerprint.ts";
import type { Narinfo } from "../../../src/nix/narinfo.ts";
import { parseNarinfo } from "../../../src/nix/narinfo_parse.ts";
import { generateSecretKey, type SecretKey } from "../../../src/nix/signature.ts";
import { NARINFO_FIXTURES } from "../../support/narinfo_fixtures.ts";

const narinfo = parseNarinfo(NARINFO_FIXTURES[0]?.[1] ?? "");
const [UPLOADER, UPSTREAM, STRANGER] = ["uploader-1", "upstream-1", "stranger-1"]
  .map(generateSecretKey) as [SecretKey, SecretKey, SecretKey];
const signedBy = (key: SecretKey): Narinfo => ({
  ...narinfo,
  signatures: [key.sign(fingerprintOf(narinfo))],
});

const trustOf = (
  uploadKeys: readonly SecretKey[],
  requireSignature: boolean,
  hasWriteToken = true,
) =>
  new UploadTrust({
    uploadKeys: uploadKeys.map(({ publicKey }) => publicKey),
    upstreamKeys: [UPSTREAM.publicKey],
    ...{ requireSignature, hasWriteToken },
  });

Deno.test("upload trust: an upload key alone authorizes, and an upstream's key vouches", () => {
  const trust = trustOf([UPLOADER], true);
  const keys = [UPLOADER, UPSTREAM, STRANGER];
  const line = "expected a signature of uploader-1";
  assert.deepEqual(keys.map((key) => trust.refusal(signedBy(key))), [undefined, line, line]);
  assert.deepEqual(keys.map((key) => trust.isSigned(signedBy(key))), [true, true, false]);
});

Deno.test("upload trust: without a key and without a token every upload is refused", () => {
  for (const signer of [UPLOADER, UPSTREAM]) {
    const refusals = [[true, true], [true, false], [false, false], [false, true]].map((
      [requireSignature = false, hasWriteToken = false],
    ) => trustOf([], requireSignature, hasWriteToken).refusal(signedBy(signer)) !== undefined);
    assert.deepEqual(refusals, [true, true, true, false]);
  }
  // A key is as good as a token, and is asked for beside one.
  assert.equal(trustOf([UPLOADER], false, false).refusal(signedBy(UPLOADER)), undefined);
  assert.notEqual(trustOf([UPLOADER], false).refusal(signedBy(UPSTREAM)), undefined);
});
