import assert from "node:assert/strict";
import {
  NARINFO_REFERENCES_MAX,
  NARINFO_SIGNATURES_MAX,
  NARINFO_TEXT_MAX,
  parseNarinfo,
} from "../../../src/nix/narinfo_parse.ts";
import { withSignatures } from "../../../src/nix/narinfo_signatures.ts";
import { generateSecretKey } from "../../../src/nix/signature.ts";

const HASH = "3acqrvb06vw0w3s9fa3wci433snbi2bg";
const NAR_HASH = "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73";
const CORRUPT = { name: "Failure", kind: "corrupt" };

const MINIMAL: Readonly<Record<string, string>> = {
  StorePath: `/nix/store/${HASH}-x`,
  URL: "nar/x.nar?hash=1#2",
  NarHash: `sha256:${NAR_HASH}`,
  NarSize: "120",
};

function textOf(fields: Readonly<Record<string, string>>, more = ""): string {
  const lines = Object.entries({ ...MINIMAL, ...fields });
  return lines.map(([key, value]) => `${key}: ${value}\n`).join("") + more;
}

Deno.test("narinfo: four fields are enough, and the compression is then bzip2", () => {
  assert.deepEqual(parseNarinfo(textOf({})), {
    storePath: `/nix/store/${HASH}-x`,
    baseName: `${HASH}-x`,
    storePathHash: HASH,
    url: "nar/x.nar?hash=1#2",
    compression: "bzip2",
    narHash: NAR_HASH,
    narSize: 120,
    references: [],
    signatures: [],
    lines: Object.entries(MINIMAL).map(([key, value]) => ({ key, value })),
  });
});

Deno.test("narinfo: every optional field is read", () => {
  const narinfo = parseNarinfo(textOf({
    Compression: "zstd",
    FileHash: `sha256:${NAR_HASH}`,
    FileSize: "9007199254740991",
    References: `${HASH}-x ${HASH}-y`,
    Deriver: `${HASH}-x.drv`,
    CA: `fixed:r:sha256:${NAR_HASH}`,
  }));

  assert.equal(narinfo.compression, "zstd");
  assert.equal(narinfo.fileHash, NAR_HASH);
  assert.equal(narinfo.fileSize, Number.MAX_SAFE_INTEGER);
  assert.deepEqual(narinfo.references, [`${HASH}-x`, `${HASH}-y`]);
  assert.equal(narinfo.deriver, `${HASH}-x.drv`);
});

Deno.test("narinfo: nothing, zero and unknown-deriver read as not there", () => {
  const text = textOf({ FileSize: "0", References: "", Deriver: "unknown-deriver" });

  const narinfo = parseNarinfo(text);

  assert.ok(!("fileSize" in narinfo) && !("deriver" in narinfo));
  assert.deepEqual(narinfo.references, []);
});

Deno.test("narinfo: any number of spaces between references is one, as for Nix", () => {
  const narinfo = parseNarinfo(textOf({ References: ` ${HASH}-x  ${HASH}-y ` }));

  assert.deepEqual(narinfo.references, [`${HASH}-x`, `${HASH}-y`]);
});

Deno.test("narinfo: a NAR hash in another spelling is the same hash, and its line stays", () => {
  const sri = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

  const narinfo = parseNarinfo(textOf({ NarHash: sri }));

  assert.equal(narinfo.narHash, NAR_HASH);
  assert.ok(narinfo.lines.some(({ key, value }) => key === "NarHash" && value === sri));
});

Deno.test("narinfo: signatures are read in order, and an unreadable one is left out", () => {
  const first = generateSecretKey("a").sign("").text;
  const second = generateSecretKey("b").sign("").text;

  const bad = ["???", "", "a:", `b:${"A".repeat(87)}`, `:${first.slice(2)}`, `${first} `];
  const more = [...bad.map((text) => `Sig: ${text}\n`), "Sig:\n", `Sig:${first}\n`].join("");
  const narinfo = parseNarinfo(textOf({}, `Sig: ${first}\n${more}Sig: ${second}\nSig:\n`));

  assert.deepEqual(narinfo.signatures.map(({ text }) => text), [first, second]);
  const lines = narinfo.lines.filter(({ key }) => key === "Sig");
  assert.deepEqual(lines.map(({ value }) => value), [first, second]);
});

Deno.test("narinfo: of one key name two signatures are read, as each costs a hash", () => {
  const signatures = [1, 2, 3, 4].map((index) => generateSecretKey("a").sign(`${index}`).text);
  const other = generateSecretKey("b").sign("").text;

  const lines = [...signatures, other].map((text) => `Sig: ${text}\n`).join("");
  const narinfo = parseNarinfo(textOf({}, lines));

  const expected = [...signatures.slice(0, 2), other];
  assert.deepEqual(narinfo.signatures.map(({ text }) => text), expected);
  const shown = narinfo.lines.filter(({ key }) => key === "Sig");
  assert.deepEqual(shown.map(({ value }) => value), expected);
});

Deno.test("narinfo: signatures of another one are added up to two of one key name", () => {
  const signed = (names: readonly string[], from: number) =>
    names.map((name, index) => generateSecretKey(name).sign(`${from + index}`).text);
  const narinfoWith = (texts: readonly string[]) =>
    parseNarinfo(textOf({}, texts.map((text) => `Sig: ${text}\n`).join("")));
  const [known, more] = [signed(["a"], 0), signed(["a", "a"], 1)];
  const other = signed(["b"], 9);

  const merged = withSignatures(narinfoWith(known), narinfoWith([...more, ...other]));
  const expected = [...known, ...more.slice(0, 1), ...other];
  assert.deepEqual(merged.signatures.map(({ text }) => text), expected);
});

Deno.test("narinfo: unknown fields are kept in their place, repeated ones too", () => {
  const narinfo = parseNarinfo(textOf({}, "X: 1\nX: 2\nY: \n"));

  assert.deepEqual(narinfo.lines.slice(-3), [
    { key: "X", value: "1" },
    { key: "X", value: "2" },
    { key: "Y", value: "" },
  ]);
});

for (const key of Object.keys(MINIMAL)) {
  Deno.test(`narinfo: without ${key}, or with it empty, it is corrupt`, () => {
    const without = textOf({}).split("\n").filter((line) => !line.startsWith(`${key}: `));
    assert.throws(() => parseNarinfo(without.join("\n")), CORRUPT);
    assert.throws(() => parseNarinfo(textOf({ [key]: "" })), CORRUPT);
  });
}

const BAD_VALUES: Readonly<Record<string, readonly string[]>> = {
  StorePath: [`${HASH}-x`, `/gnu/store/${HASH}-x`, `/nix/store/${HASH}`, `/nix/store/${HASH}-x/y`],
  URL: ["nar/\0", "nar/\r", "nar/\x7f", "nar/\x85"],
  Compression: ["lzip", "XZ", "constructor"],
  FileHash: ["", "x", NAR_HASH],
  FileSize: ["", "-1", "1.5", "1e3", "0x10", "01", "9007199254740992", "12345678901234567890"],
  NarHash: ["x", NAR_HASH, `md5:${"0".repeat(32)}`, `sha256:${NAR_HASH} `],
  NarSize: ["0", "-1", "+1", "1.5", "1e3", "0x10", " 1", "1 ", "9007199254740992", "NaN"],
  References: ["x", `/nix/store/${HASH}-x`, `${HASH}-x,${HASH}-y`, `${HASH}-x\t${HASH}-y`],
  Deriver: ["", "x", `/nix/store/${HASH}-x.drv`],
  CA: [
    ...["x", " ", "fixed", "text:sha256", "fixed:r:sha256:", "fixed:r:sha256:0", "fixed:sha3:00"],
    ...[`sha256:${NAR_HASH}`, `r:sha256:${NAR_HASH}`, `fixed:x:sha256:${NAR_HASH}`],
    ...[`fixed:sha256:${NAR_HASH.slice(1)}`, `fixed:md5:${NAR_HASH}`, `text:sha256:${NAR_HASH} `],
    ...[`fixed:sha256:${"e".repeat(52)}`, `fixed:sha256:${"g".repeat(64)}`],
  ],
};

const CONTENT_ADDRESSES = [
  ...["", `text:sha256:${NAR_HASH}`, `fixed:r:sha256:${NAR_HASH}`, `fixed:sha256:${NAR_HASH}`],
  ...[`fixed:git:sha1:${"0".repeat(32)}`, `fixed:md5:${"0".repeat(32)}`],
  ...[`fixed:sha512:${"1".repeat(103)}`, `fixed:r:sha256:${"0".repeat(64)}`],
  "fixed:sha256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
];

Deno.test("narinfo: every content address that Nix writes is read", () => {
  for (const CA of CONTENT_ADDRESSES) {
    const { lines } = parseNarinfo(textOf({ CA }));
    assert.deepEqual(lines.at(-1), { key: "CA", value: CA });
  }
});

for (const [key, values] of Object.entries(BAD_VALUES)) {
  Deno.test(`narinfo: a bad ${key} is corrupt`, () => {
    for (const value of values) {
      assert.throws(() => parseNarinfo(textOf({ [key]: value })), CORRUPT, value);
    }
  });
}

Deno.test("narinfo: a known field that is there twice is corrupt", () => {
  const known = { Compression: "xz", FileHash: `sha256:${NAR_HASH}`, FileSize: "1", CA: "" };
  const fields = { ...MINIMAL, ...known, References: "", Deriver: "unknown-deriver" };
  for (const [key, value] of Object.entries(fields)) {
    const twice = textOf(fields, `${key}: ${value}\n`);
    assert.throws(() => parseNarinfo(twice), { ...CORRUPT, message: /twice/ }, key);
  }
});

Deno.test("narinfo: a line that is not ended or not a key and a value is corrupt", () => {
  for (const more of ["X: 1", "\n", "X\n", "X:1\n", "X:\n", ": 1\n", "X: 1\r\n", "X: \0\n"]) {
    assert.throws(() => parseNarinfo(textOf({}, more)), CORRUPT, more);
  }
  assert.throws(() => parseNarinfo(""), CORRUPT);
});

Deno.test("narinfo: text, references and signatures have a limit", () => {
  const long = `X: ${"x".repeat(NARINFO_TEXT_MAX)}\n`;
  assert.throws(() => parseNarinfo(textOf({}, long)), { ...CORRUPT, message: /characters/ });

  const references = (count: number) => {
    const names = Array.from({ length: count }, (_, index) => `${HASH}-${index}`);
    return textOf({ References: names.join(" ") });
  };
  assert.equal(parseNarinfo(references(NARINFO_REFERENCES_MAX)).references.length, 50_000);
  assert.throws(() => parseNarinfo(references(NARINFO_REFERENCES_MAX + 1)), CORRUPT);

  const { text: signature } = generateSecretKey("a").sign("");
  const lines = (count: number) =>
    Array.from({ length: count }, (_, index) => `Sig: ${index}${signature}\n`).join("");
  const signed = (count: number) => textOf({}, lines(count));
  assert.equal(parseNarinfo(signed(NARINFO_SIGNATURES_MAX)).signatures.length, 100);
  assert.throws(() => parseNarinfo(signed(NARINFO_SIGNATURES_MAX + 1)), CORRUPT);
});

const UNSIGNED = { ...CORRUPT, message: /not signed/ };
const SIGNATURE = generateSecretKey("a").sign("").text;
const KIB = 1024;

const PADDINGS: Readonly<Record<string, (byteLength: number) => string>> = {
  "an unknown line": (byteLength) => textOf({}, `X: ${"x".repeat(byteLength)}\n`),
  "unknown lines": (byteLength) => textOf({}, "X: x\n".repeat(byteLength / 5)),
  "lines without a value": (byteLength) => textOf({}, "X: \n".repeat(byteLength / 4)),
  "an unknown key": (byteLength) => textOf({}, `${"X".repeat(byteLength)}: x\n`),
  "characters of three bytes": (byteLength) =>
    textOf({}, `X: ${"\u20ac".repeat(byteLength / 3)}\n`),
  "signatures of others": (byteLength) =>
    textOf({}, `Sig: ${"x".repeat(700)}${SIGNATURE}\n`.repeat(byteLength / 700)),
  "unreadable signatures": (byteLength) => textOf({}, "Sig: x\n".repeat(byteLength / 7)),
  "a URL": (byteLength) => textOf({ URL: `nar/x?${"x".repeat(byteLength)}` }),
  "blanks between references": (byteLength) =>
    textOf({ References: `${HASH}-x${" ".repeat(byteLength)}${HASH}-y` }),
  "a reference again and again": (byteLength) =>
    textOf({ References: `${HASH}-x `.repeat(byteLength / 35) }),
};

for (const [what, padded] of Object.entries(PADDINGS)) {
  Deno.test(`narinfo: over 64 KiB of ${what} are corrupt: no signature covers them`, () => {
    assert.ok(parseNarinfo(padded(50 * KIB)).narSize > 0);
    assert.throws(() => parseNarinfo(padded(70 * KIB)), UNSIGNED);
  });
}
