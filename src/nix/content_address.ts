/** Bytes of a digest by the algorithm's name, as Nix spells it. */
const DIGEST_BYTES: Readonly<Record<string, number>> = {
  md5: 16,
  sha1: 20,
  sha256: 32,
  sha512: 64,
  blake3: 32,
};

const CONTENT_ADDRESS_REGEXP = /^(?:text|fixed(?::r|:git)?):([a-z0-9]+):([0-9a-zA-Z+/=]+)$/;

/**
 * True for a content address that Nix reads: a method, an algorithm and a digest of its length. An
 * empty one means that there is none.
 */
export function isContentAddress(text: string): boolean {
  if (text === "") return true;
  const [, algorithm = "", digest = ""] = CONTENT_ADDRESS_REGEXP.exec(text) ?? [];
  const bytes = Object.hasOwn(DIGEST_BYTES, algorithm) ? DIGEST_BYTES[algorithm] ?? 0 : 0;
  return bytes > 0 && SPELLINGS.some((isSpelled) => isSpelled(digest, bytes));
}

/** The spellings of a digest: base16, nix32, base64. Its length tells which one it is. */
const SPELLINGS: readonly ((digest: string, bytes: number) => boolean)[] = [
  (digest, bytes) => digest.length === bytes * 2 && /^[0-9a-fA-F]+$/.test(digest),
  (digest, bytes) =>
    digest.length === Math.ceil(bytes * 8 / 5) && /^[0-9abcdfghijklmnpqrsvwxyz]+$/.test(digest),
  (digest, bytes) =>
    digest.length === Math.ceil(bytes / 3) * 4 && /^[0-9a-zA-Z+/]+={0,2}$/.test(digest),
];
