import type { Bytes } from "../../src/base/bytes.ts";
import type { Compression } from "../../src/nix/compression.ts";

const FOLDER = new URL("../fixtures/nar/", import.meta.url);

/** One NAR as the real programs compressed it: file name, compression, bytes. */
export interface NarFixture {
  readonly name: string;
  readonly compression: Compression;
  readonly bytes: Bytes;
}

const FILES: readonly (readonly [name: string, compression: Compression])[] = [
  ["shelf.nar", "none"],
  ["shelf.nar.xz", "xz"],
  ["blocks.nar.xz", "xz"],
  ["streams.nar.xz", "xz"],
  ["shelf.nar.zst", "zstd"],
  ["frames.nar.zst", "zstd"],
  ["flushes.nar.zst", "zstd"],
  ["shelf.nar.bz2", "bzip2"],
  ["streams.nar.bz2", "bzip2"],
  ["shelf.nar.gz", "gzip"],
  ["shelf.nar.br", "br"],
];

/** All of them decompress to `FIXTURE_NAR`. */
export const NAR_FIXTURES: readonly NarFixture[] = FILES.map(([name, compression]) => ({
  name,
  compression,
  bytes: Deno.readFileSync(new URL(name, FOLDER)),
}));

export const FIXTURE_NAR: Bytes = Deno.readFileSync(
  new URL("shelf.nar", FOLDER),
);
