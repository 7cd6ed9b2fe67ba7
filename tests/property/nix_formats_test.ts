import assert from "node:assert/strict";
import fc from "fast-check";
import { Failure } from "../../src/base/failure.ts";
import { type Compression, COMPRESSIONS, parseCompression } from "../../src/nix/compression.ts";
import { fingerprintOf } from "../../src/nix/fingerprint.ts";
import { formatSha256, parseSha256, sha256FromDigest } from "../../src/nix/hash.ts";
import { compressionOf, hashOf, narName, parseNarName } from "../../src/nix/nar_name.ts";
import { formatNarinfo } from "../../src/nix/narinfo_format.ts";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { encodeNix32, NIX32_ALPHABET } from "../../src/nix/nix32.ts";
import { formatNixCacheInfo, parseNixCacheInfo } from "../../src/nix/nix_cache_info.ts";
import {
  generateSecretKey,
  parsePublicKey,
  parseSecretKey,
  SecretKey,
  signatureOf,
} from "../../src/nix/signature.ts";
import { hashOfBaseName, parseBaseName, parseStorePath } from "../../src/nix/store_path.ts";
import { TrustedKeys } from "../../src/nix/trusted_keys.ts";
import { FIXTURE_KEY, NARINFO_FIXTURES } from "../support/narinfo_fixtures.ts";
import { checkProperty } from "../support/property.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const charsOf = (alphabet: string) => fc.constantFrom(...alphabet);
const storePathHash = bytes(20).map(encodeNix32);
const name = fc.string({ unit: charsOf("aZ09+-._?="), minLength: 1, maxLength: 211 });
const baseName = fc.tuple(storePathHash, name).map((parts) => parseBaseName(parts.join("-")));
const sha256 = bytes(32).map(sha256FromDigest);
const compression = fc.constantFrom(...Object.keys(COMPRESSIONS) as Compression[]);
const size = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const value = fc.string({ unit: "grapheme" }).map((text) => text.replace(/\p{Cc}/gu, ""));
const keyName = fc.string({ unit: charsOf("aZ09.-_"), minLength: 1, maxLength: 255 });

/** Lines of a narinfo that parses, in any order, with unknown fields. */
const narinfoText = fc.record({
  StorePath: baseName.map((text) => `/nix/store/${text}`),
  URL: value.map((text) => `nar/${text}`),
  NarHash: sha256.map(formatSha256),
  NarSize: size.map(String),
  Compression: fc.oneof(compression, fc.constant("")),
  FileHash: sha256.map(formatSha256),
  FileSize: fc.oneof(size.map(String), fc.constant("0")),
  References: fc.array(baseName, { maxLength: 8 }).map((names) => names.join(" ")),
  Deriver: fc.oneof(baseName, fc.constant("unknown-deriver")),
  CA: fc.oneof(fc.constant(""), sha256.map((hash) => `fixed:r:sha256:${hash}`)),
  Sig: fc.tuple(keyName, bytes(64)).map(([key, raw]) => `${key}:${raw.toBase64()}`),
  Unknown: value,
}, { requiredKeys: ["StorePath", "URL", "NarHash", "NarSize"] })
  .chain((fields) =>
    fc.shuffledSubarray(Object.entries(fields), { minLength: Object.keys(fields).length })
  )
  .map((lines) => lines.map(([key, text]) => `${key}: ${text}\n`).join(""));

/** Text that is nearly right: a real one with a slice of it replaced. */
const nearly = fc.tuple(
  fc.oneof(
    fc.constantFrom(...NARINFO_FIXTURES.map(([, text]) => text)),
    narinfoText,
    fc.constantFrom(
      FIXTURE_KEY,
      generateSecretKey("a").text,
      "StoreDir: /nix/store\nPriority: 1\n",
    ),
    fc.oneof(baseName, sha256.map(formatSha256), sha256.map((hash) => `${hash}.nar.xz`)),
  ),
  fc.nat(1_000),
  fc.nat(20),
  fc.string({ unit: "binary", maxLength: 20 }),
).map(([text, at, length, insert]) => text.slice(0, at) + insert + text.slice(at + length));

const anyText = fc.oneof(nearly, fc.string({ unit: "binary" }), fc.string(), value);

checkProperty(
  "nix32: bytes are spelled as the digits of one number, the last byte first",
  fc.property(fc.uint8Array({ minLength: 1, maxLength: 70 }), (raw) => {
    let number = BigInt(`0x${raw.toReversed().toHex()}`);
    let digits = "";
    for (let left = Math.ceil(raw.length * 8 / 5); left > 0; left--, number >>= 5n) {
      digits = NIX32_ALPHABET.charAt(Number(number & 31n)) + digits;
    }
    assert.equal(encodeNix32(raw), digits);
  }),
);

checkProperty(
  "hash: every spelling of a digest is the same SHA-256",
  fc.property(bytes(32), (digest) => {
    const hash = sha256FromDigest(digest);
    assert.equal(parseSha256(formatSha256(hash)), hash);
    assert.equal(parseSha256(`sha256:${digest.toHex()}`), hash);
    assert.equal(parseSha256(`sha256-${digest.toBase64()}`), hash);
  }),
);

checkProperty(
  "base name and store path: a parsed text is the one that was written",
  fc.property(baseName, (text) => {
    assert.equal(parseStorePath(`/nix/store/${text}`), text);
    assert.equal(hashOfBaseName(parseBaseName(text)), text.slice(0, 32));
  }),
);

checkProperty(
  "NAR name: hash and compression can be read back",
  fc.property(sha256, compression, (hash, method) => {
    const read = parseNarName(narName(hash, method));
    assert.ok(read !== undefined);
    assert.deepEqual([hashOf(read), compressionOf(read)], [hash, method]);
  }),
);

checkProperty(
  "nix-cache-info: the parsed fields are those that were written",
  fc.property(name, fc.boolean(), fc.nat(999_999_999), (folder, wantMassQuery, priority) => {
    const info = { storeDir: `/${folder}`, wantMassQuery, priority };
    assert.deepEqual(parseNixCacheInfo(formatNixCacheInfo(info)), info);
  }),
);

checkProperty(
  "keys and signatures: texts can be read back, and signed messages verify",
  fc.property(keyName, bytes(32), fc.string({ unit: "binary" }), (label, seed, message) => {
    const key = new SecretKey(label, seed);
    const signature = signatureOf(key.sign(message).text) ?? assert.fail();
    assert.equal(parseSecretKey(key.text).text, key.text);
    assert.equal(parsePublicKey(key.publicKey.text).verify(message, signature), true);
    assert.equal(key.publicKey.verify(`${message}.`, signature), false);
  }),
  { runs: 200 },
);

checkProperty(
  "public key: no signature of any bytes makes it throw",
  fc.property(bytes(32), bytes(64), fc.string(), (raw, forged, message) => {
    const key = tryOrFail(() => parsePublicKey(`a:${raw.toBase64()}`));
    key?.verify(message, signatureOf(`a:${forged.toBase64()}`) ?? assert.fail());
  }),
);

checkProperty(
  "narinfo: written and read again it means the same, and is written the same",
  fc.property(narinfoText, (text) => {
    const narinfo = parseNarinfo(text);
    const formatted = formatNarinfo(narinfo, { url: narinfo.url });
    const again = parseNarinfo(formatted);
    assert.deepEqual({ ...again, lines: [] }, { ...narinfo, lines: [] });
    assert.equal(formatNarinfo(again, { url: again.url }), formatted);
    assert.equal(fingerprintOf(again), fingerprintOf(narinfo));
    if (/^Compression: ./m.test(text)) assert.equal(formatted, text);
  }),
);

checkProperty(
  "narinfo: our signature, added as a line, verifies and can be replaced",
  fc.property(narinfoText, keyName, bytes(32), (text, label, seed) => {
    const key = new SecretKey(label, seed);
    const trusted = new TrustedKeys([key.publicKey]);
    const narinfo = parseNarinfo(text);
    const signature = key.sign(fingerprintOf(narinfo)).text;
    const line = `Sig: ${signature}\n`;
    const format = { url: "nar/ours", withoutSignature: signature };
    const signed = formatNarinfo(narinfo, format) + line;
    assert.equal(trusted.signerOf(parseNarinfo(signed)), key.publicKey);
    assert.equal(formatNarinfo(parseNarinfo(signed), format) + line, signed);
  }),
  { runs: 200 },
);

const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  parseBaseName,
  parseCompression,
  parseNarName,
  parseNarinfo,
  parseNixCacheInfo,
  parsePublicKey,
  parseSecretKey,
  parseSha256,
  parseStorePath,
  signatureOf,
};

for (const [parser, parse] of Object.entries(PARSERS)) {
  checkProperty(
    `${parser}: any text is read or is a Failure in one short line`,
    fc.property(anyText, (text) => void tryOrFail(() => parse(text))),
    { runs: 1_000 },
  );
}

/** The value, or `undefined` for a Failure that is fit for a log; anything else is thrown. */
function tryOrFail<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown;
    assert.match(thrown.message, /^Cannot [^\n]{1,700}[^.\n]$/u);
    return undefined;
  }
}
