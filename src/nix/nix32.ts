/** Nix leaves out e, o, u and t. */
export const NIX32_ALPHABET = "0123456789abcdfghijklmnpqrsvwxyz";
const BITS_PER_CHAR = 5;

/** Nix's base 32: no padding, the last byte's bits come first. */
export function encodeNix32(bytes: Uint8Array): string {
  let text = "";
  for (let n = lengthOf(bytes.length) - 1; n >= 0; n--) {
    const index = (n * BITS_PER_CHAR) >> 3;
    const shift = (n * BITS_PER_CHAR) & 7;
    const low = (bytes[index] ?? 0) >> shift;
    const high = (bytes[index + 1] ?? 0) << (8 - shift);
    text += NIX32_ALPHABET.charAt((low | high) & 31);
  }
  return text;
}

function lengthOf(byteLength: number): number {
  return Math.ceil(byteLength * 8 / BITS_PER_CHAR);
}
