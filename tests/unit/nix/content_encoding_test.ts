import assert from "node:assert/strict";
import { compressionOfMagic } from "../../../src/nix/compression.ts";
import { parseContentEncoding } from "../../../src/nix/content_encoding.ts";
import { available, compress } from "../../support/compressors.ts";
import { testUnless } from "../../support/program.ts";

const KNOWN: readonly (readonly [header: string | null, codecs: readonly string[]])[] = [
  [null, []],
  ["", []],
  ["identity", []],
  ["Identity", []],
  ["none", []],
  ["gzip", ["gzip"]],
  ["x-gzip", ["gzip"]],
  ["X-GZip", ["gzip"]],
  ["deflate", ["deflate"]],
  ["BR", ["br"]],
  [" zstd ", ["zstd"]],
  ["xz", ["xz"]],
  ["bzip2", ["bzip2"]],
  ["gzip,", ["gzip"]],
  ["identity, GZIP", ["gzip"]],
  ["zstd,gzip", ["zstd", "gzip"]],
];

for (const [header, codecs] of KNOWN) {
  Deno.test(`content encoding: ${JSON.stringify(header)} is [${codecs}]`, () => {
    assert.deepEqual(parseContentEncoding(header), { kind: "known", codecs });
  });
}

Deno.test("content encoding: an unknown name is named, in bounds", () => {
  const unknown = (header: string) => {
    const encoding = parseContentEncoding(header);
    return encoding.kind === "unknown" ? encoding.name : undefined;
  };
  assert.equal(unknown("gzip, Snappy"), '"Snappy"');
  assert.equal(unknown("__proto__"), '"__proto__"');
  assert.ok((unknown("x".repeat(10_000)) ?? "").length < 100);
  assert.equal(unknown("gzip, gzip, gzip, gzip"), '"gzip, gzip, gzip, gzip"');
});

for (const compression of ["gzip", "zstd", "xz", "bzip2"] as const) {
  testUnless(
    available(compression),
    `content encoding: the magic number of ${compression}`,
    async () => {
      for (const text of ["", "{}"]) {
        const bytes = await compress(new TextEncoder().encode(text), compression);
        assert.equal(compressionOfMagic(bytes), compression);
        assert.equal(compressionOfMagic(bytes.subarray(0, 1)), "none");
      }
    },
  );
}

Deno.test("content encoding: no text has a magic number", () => {
  assert.equal(compressionOfMagic(new TextEncoder().encode("BZh9 is how a log may begin")), "none");
});
