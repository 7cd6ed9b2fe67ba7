import assert from "node:assert/strict";
import { type Compression, COMPRESSIONS, parseCompression } from "../../../src/nix/compression.ts";
import { parseSha256 } from "../../../src/nix/hash.ts";
import {
  compressionOf,
  hashOf,
  markedNarName,
  narName,
  parseNarName,
  parseNarReference,
} from "../../../src/nix/nar_name.ts";

const NIX32 = "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73";
const ALL = Object.keys(COMPRESSIONS) as Compression[];

Deno.test("compression: a narinfo's value is read by Nix's names, none being bzip2", () => {
  for (const compression of ALL) assert.equal(parseCompression(compression), compression);
  assert.equal(parseCompression(undefined), "bzip2");
  assert.equal(parseCompression(""), "bzip2");
});

Deno.test("compression: an unknown name is corrupt, inherited property names included", () => {
  for (const text of ["XZ", "zst", "lzip", "xz ", "constructor", "__proto__", "toString"]) {
    assert.throws(() => parseCompression(text), { name: "Failure", kind: "corrupt" }, text);
  }
});

Deno.test("compression: no two share an extension", () => {
  const extensions = ALL.map((compression) => COMPRESSIONS[compression].extension);
  assert.equal(new Set(extensions).size, ALL.length);
});

Deno.test("NAR name: hash and compression can be read back", () => {
  const sha256 = parseSha256(`sha256:${NIX32}`);
  for (const compression of ALL) {
    const name = parseNarName(narName(sha256, compression));

    assert.ok(name !== undefined);
    assert.equal(hashOf(name), sha256);
    assert.equal(compressionOf(name), compression);
  }
  assert.equal(narName(sha256, "zstd"), `${NIX32}.nar.zst`);
  assert.equal(narName(sha256, "none"), `${NIX32}.nar`);
});

Deno.test("NAR name: a mark keeps hash and compression, and no hash spells it", () => {
  const sha256 = parseSha256(`sha256:${NIX32}`);
  for (const compression of ALL) {
    const plain = narName(sha256, compression);
    const name = parseNarName(markedNarName(plain, sha256));

    assert.equal(name, plain.replace(NIX32, `${NIX32}-${NIX32.slice(-32)}`));
    assert.ok(name !== undefined);
    assert.equal(hashOf(name), sha256);
    assert.equal(compressionOf(name), compression);
  }
});

Deno.test("NAR name: a name that we never hand out is not ours", () => {
  const others = [
    "",
    NIX32,
    `${NIX32}.nar.`,
    `${NIX32}-.nar`,
    `${NIX32}-${NIX32}.nar`,
    `${NIX32}-${"e".repeat(32)}.nar`,
    `${NIX32}.nar.zstd`,
    `${NIX32}.nar.lz`,
    `${NIX32}.nar.xz\n`,
    `${NIX32}.nar.xz.xz`,
    `${NIX32}.NAR`,
    `2${NIX32.slice(1)}.nar`,
    `${"0".repeat(64)}.nar.xz`,
    `../${NIX32}.nar`,
    `${NIX32}.nar/`,
  ];
  for (const text of others) assert.equal(parseNarName(text), undefined, text);
});

Deno.test("NAR reference: names of nix-serve and harmonia have a store path", () => {
  const [path, nar] = ["0".repeat(32), `${"1".repeat(52)}.nar`];
  const found = { name: nar, storePathHash: path };
  assert.deepEqual(parseNarReference(`${path}-${nar}`), found);
  assert.deepEqual(parseNarReference(nar, `?hash=${path}`), found);
  for (const query of ["", "?", "?hash=", "?hash=e", `?other=${path}`, `?hash=${path}x`]) {
    assert.deepEqual(parseNarReference(nar, query), { name: nar });
  }
  const mark = `${"1".repeat(52)}-${path}.nar.xz`;
  assert.deepEqual(parseNarReference(mark), { name: mark });
  for (const text of [`${"e".repeat(32)}-${nar}`, `-${nar}`, `${path}-x.nar`, `${path}--${nar}`]) {
    assert.equal(parseNarReference(text), undefined, text);
  }
});
