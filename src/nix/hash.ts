import { Failure } from "../base/failure.ts";
import { excerpt } from "./excerpt.ts";
import { encodeNix32 } from "./nix32.ts";

declare const sha256Brand: unique symbol;
declare const narHashBrand: unique symbol;
declare const fileHashBrand: unique symbol;

/** The 52 nix32 characters of a SHA-256, without a prefix. */
export type Sha256 = string & { readonly [sha256Brand]: true };

/** Hash of the uncompressed NAR; signed. */
export type NarHash = Sha256 & { readonly [narHashBrand]: true };

/** Hash of the NAR file as transferred; not signed. */
export type FileHash = Sha256 & { readonly [fileHashBrand]: true };

const DIGEST_BYTES = 32;
// 52 characters hold 260 bits: the first one carries a single bit of the hash.
const SHA256_REGEXP = /^[01][0-9abcdfghijklmnpqrsvwxyz]{51}$/;
const BASE16_REGEXP = /^[0-9a-fA-F]{64}$/;
const BASE64_CHARS = 44;

/** True for the bare nix32 spelling. */
export function isSha256(text: string): text is Sha256 {
  return SHA256_REGEXP.test(text);
}

/**
 * Parses all spellings that Nix accepts: `sha256:` before nix32, base16 or base64, and the SRI form
 * `sha256-<base64>`. Throws "bad-request" for anything else.
 */
export function parseSha256(text: string): Sha256 {
  const prefix = text.slice(0, 7);
  const rest = text.slice(7);
  if (prefix === "sha256:") {
    if (isSha256(rest)) return rest;
    if (BASE16_REGEXP.test(rest)) return sha256FromDigest(Uint8Array.fromHex(rest));
  }
  if ((prefix === "sha256:" || prefix === "sha256-") && rest.length === BASE64_CHARS) {
    const digest = fromBase64(rest);
    if (digest?.length === DIGEST_BYTES) return sha256FromDigest(digest);
  }
  throw new Failure("bad-request", `Cannot read ${excerpt(text)} as a SHA-256`);
}

/** Like `parseSha256`, for a hash of an uncompressed NAR. */
export function parseNarHash(text: string): NarHash {
  return parseSha256(text) as NarHash;
}

/** Like `parseSha256`, for a hash of a NAR file. */
export function parseFileHash(text: string): FileHash {
  return parseSha256(text) as FileHash;
}

/** The SHA-256 of 32 digest bytes. Throws "broken" for another length. */
export function sha256FromDigest(digest: Uint8Array): Sha256 {
  if (digest.length !== DIGEST_BYTES) {
    throw new Failure("broken", `Cannot name a SHA-256: it has ${digest.length} bytes, not 32`);
  }
  return encodeNix32(digest) as Sha256;
}

/** The spelling of narinfos: `sha256:` and nix32. */
export function formatSha256(sha256: Sha256): string {
  return `sha256:${sha256}`;
}

function fromBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.fromBase64(text, { lastChunkHandling: "strict" });
  } catch {
    return undefined;
  }
}
