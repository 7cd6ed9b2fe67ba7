import { type Compression, compressionOfMagic } from "./compression.ts";
import { excerpt } from "./excerpt.ts";

/** What a body may be encoded in: the compressions of NAR files, and HTTP's own. */
export type Codec = Exclude<Compression, "none"> | "deflate";

/** The Content-Encodings that larder can decode, in upstreams' answers and in uploads. */
const CODECS: Readonly<Record<string, Codec | "none">> = {
  "identity": "none",
  // Nix names its compressions as they are; HTTP has some of them.
  "none": "none",
  "gzip": "gzip",
  "x-gzip": "gzip",
  "deflate": "deflate",
  "br": "br",
  "zstd": "zstd",
  "xz": "xz",
  "bzip2": "bzip2",
};

/** The known names in words. */
export const KNOWN_CONTENT_ENCODINGS = "gzip, deflate, br, zstd, xz, bzip2 or none";

/** No honest body has more encodings. */
const CODECS_MAX = 3;

/** The encodings of a body, in the order in which they were applied; none: it is plain. */
export type ContentEncoding =
  | { readonly kind: "known"; readonly codecs: readonly Codec[] }
  /** `name`: an excerpt of the first unknown one. */
  | { readonly kind: "unknown"; readonly name: string };

/** Reads the header Content-Encoding: a list of names, compared without case. */
export function parseContentEncoding(header: string | null | undefined): ContentEncoding {
  const codecs: Codec[] = [];
  for (const item of (header ?? "").split(",")) {
    const name = item.trim().toLowerCase();
    // A list may have empty items.
    if (name === "") continue;
    const codec = Object.hasOwn(CODECS, name) ? CODECS[name] : undefined;
    if (codec === undefined) return { kind: "unknown", name: excerpt(item.trim()) };
    if (codec !== "none") codecs.push(codec);
    if (codecs.length > CODECS_MAX) return { kind: "unknown", name: excerpt(header ?? "") };
  }
  return { kind: "known", codecs };
}

/** The encoding of a body that does not say it: of one that begins as a compressed file does. */
export function codecOfMagic(bytes: Uint8Array): readonly Codec[] {
  const compression = compressionOfMagic(bytes);
  return compression === "none" ? [] : [compression];
}
