import assert from "node:assert/strict";
import { fingerprintOf } from "../../../src/nix/fingerprint.ts";
import { parseNarinfo } from "../../../src/nix/narinfo_parse.ts";
import { generateSecretKey } from "../../../src/nix/signature.ts";
import { TrustedKeys } from "../../../src/nix/trusted_keys.ts";
import { readNarinfo } from "../../../src/upstream/read_narinfo.ts";
import { NARINFO_FIXTURES } from "../../support/narinfo_fixtures.ts";

const NARINFO = parseNarinfo(NARINFO_FIXTURES[0]?.[1] ?? "");
const UNSIGNED = NARINFO_FIXTURES[0]?.[1].replace(/^Sig: .*\n/gm, "") ?? "";
const [TRUSTED, IMPOSTOR, STRANGER] = ["known-1", "known-1", "stranger-1"].map(generateSecretKey);
const rules = {
  ...{ baseUrl: "https://cache.example.org", requireSignature: true },
  keys: new TrustedKeys(TRUSTED === undefined ? [] : [TRUSTED.publicKey]),
};

/** The narinfo with a signature of each key. */
function signedBy(...keys: readonly (typeof TRUSTED)[]): string {
  const lines = keys.map((key) => `Sig: ${key?.sign(fingerprintOf(NARINFO)).text}\n`);
  return UNSIGNED + lines.join("");
}

const read = (text: string, more: Partial<typeof rules> = {}) =>
  readNarinfo(NARINFO.storePathHash, text, { ...rules, ...more });

Deno.test("read narinfo: one signature of a trusted key makes it found and trusted", () => {
  for (const text of [signedBy(TRUSTED), signedBy(STRANGER, TRUSTED)]) {
    const reading = read(text);
    assert.ok(reading.kind === "found" && reading.trusted);
  }
});

Deno.test("read narinfo: an untrusted one says who signed it, and whether a key differs", () => {
  const wrong = { differs: "signature", wrongKey: "known-1" };
  const cases = [
    [signedBy(), "it is signed by nobody", {}],
    [signedBy(STRANGER), "it is signed by stranger-1", {}],
    [
      signedBy(STRANGER, IMPOSTOR),
      "the signature of key known-1 does not match the key given under that name",
      wrong,
    ],
  ] as const;
  for (const [text, why, more] of cases) {
    const detail = `Cannot trust narinfo: ${why}`;
    assert.deepEqual(read(text), { kind: "failed", reason: "untrusted", detail, ...more });
    const reading = read(text, { requireSignature: false });
    assert.ok(reading.kind === "found" && !reading.trusted);
  }
});

Deno.test("read narinfo: garbage, another path and another place are failures", () => {
  const [garbage, other, elsewhere] = [
    read("garbage"),
    readNarinfo(
      parseNarinfo(NARINFO_FIXTURES[1]?.[1] ?? "").storePathHash,
      signedBy(TRUSTED),
      rules,
    ),
    read(signedBy(TRUSTED).replace(/^URL: .*$/m, "URL: https://other.example.org/nar/x.nar?key=1")),
  ];
  const facts = [garbage, other, elsewhere].map((reading) => (
    reading.kind === "failed" ? [reading.reason, reading.differs] : reading.kind
  ));
  assert.deepEqual(facts, [["garbage", undefined], ["garbage", "narinfo"], ["garbage", "narinfo"]]);
  assert.ok(!JSON.stringify(elsewhere).includes("key=1"));
});
