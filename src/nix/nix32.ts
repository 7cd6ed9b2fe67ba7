import { Failure } from "../base/failure.ts";
import { excerpt } from "./excerpt.ts";

/** Nix leaves out e, o, u and t. */
export const NIX32_ALPHABET = "0123456789abcdfghijklmnpqrsvwxyz";
const BITS_PER_CHAR = 5;
const NO_DIGIT = 255;
const DIGIT_OF_CODE = digitTable();

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

/**
 * The `byteLength` bytes that `text` spells. Throws "bad-request" for another length, an invalid
 * character, or padding bits that are not zero.
 */
export function decodeNix32(text: string, byteLength: number): Uint8Array<ArrayBuffer> {
  if (text.length !== lengthOf(byteLength)) {
    throw unreadable(text, `${byteLength} bytes take ${lengthOf(byteLength)} characters`);
  }
  const bytes = new Uint8Array(byteLength);
  for (let n = 0; n < text.length; n++) {
    const digit = DIGIT_OF_CODE[text.charCodeAt(text.length - 1 - n)] ?? NO_DIGIT;
    if (digit === NO_DIGIT) throw unreadable(text, "a character is not in its alphabet");
    const index = (n * BITS_PER_CHAR) >> 3;
    const wide = digit << ((n * BITS_PER_CHAR) & 7);
    bytes[index] = (bytes[index] ?? 0) | (wide & 255);
    if (wide < 256) continue;
    if (index + 1 === byteLength) throw unreadable(text, "padding bits are not zero");
    bytes[index + 1] = wide >> 8;
  }
  return bytes;
}

function lengthOf(byteLength: number): number {
  return Math.ceil(byteLength * 8 / BITS_PER_CHAR);
}

function digitTable(): Uint8Array {
  const table = new Uint8Array(128).fill(NO_DIGIT);
  for (let digit = 0; digit < NIX32_ALPHABET.length; digit++) {
    table[NIX32_ALPHABET.charCodeAt(digit)] = digit;
  }
  return table;
}

function unreadable(text: string, state: string): Failure {
  return new Failure("bad-request", `Cannot read ${excerpt(text)} as nix32: ${state}`);
}
