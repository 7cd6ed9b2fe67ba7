import { Buffer } from "node:buffer";
import { Failure } from "../base/failure.ts";
import { parseCompression } from "./compression.ts";
import { excerpt } from "./excerpt.ts";
import { parseFileHash, parseNarHash } from "./hash.ts";
import type { Narinfo, NarinfoLine } from "./narinfo.ts";
import { type Signature, signatureOf } from "./signature.ts";
import {
  type BaseName,
  hashOfBaseName,
  isBaseName,
  parseBaseName,
  parseStorePath,
} from "./store_path.ts";

/** Longest accepted text, in characters. */
export const NARINFO_TEXT_MAX = 2 * 1024 * 1024;
export const NARINFO_REFERENCES_MAX = 50_000;
/** Real narinfos have 1 to 3. */
export const NARINFO_SIGNATURES_MAX = 100;
/**
 * To check one of a trusted key name is to hash all references: some 10 ms for 2 MiB. A key signs
 * once, and an older key may have had its name.
 */
export const SIGNATURES_OF_NAME_MAX = 2;
/** Limit for all unsigned lines, which anybody on the way may extend. Real narinfos have 1 KB. */
const NARINFO_UNSIGNED_BYTES_MAX = 64 * 1024;

/** Bytes of a line beside key and value: the colon, the blank and the line's end. */
const LINE_BYTES = 3;

/** Maximum bytes of a character in UTF-8. A surrogate pair is two characters, and has 4 bytes. */
const CHARACTER_BYTES_MAX = 3;

/** The fields of the fingerprint. */
const SIGNED: ReadonlySet<string> = new Set(["StorePath", "NarHash", "NarSize", "References"]);

const SINGLE_VALUED: ReadonlySet<string> = new Set([
  "StorePath",
  "URL",
  "Compression",
  "FileHash",
  "FileSize",
  "NarHash",
  "NarSize",
  "References",
  "Deriver",
  "CA",
]);
// Control characters but "\n". "\r" would become part of a signed value.
const CONTROL_REGEXP = /[^\P{Cc}\n]/u;
const SIZE_REGEXP = /^(?:0|[1-9][0-9]{0,15})$/;

/**
 * Parses a narinfo's text. Throws "corrupt" for every error. It leaves out `Sig` lines that it cannot
 * read, as a newer Nix refuses a whole narinfo for one of them, and those too many of one key name.
 */
export function parseNarinfo(text: string): Narinfo {
  const { lines, leftOut, values, signatures } = readLines(text);
  const storePath = required(values, "StorePath");
  const baseName = convert("StorePath", storePath, parseStorePath);
  const fileHash = values.get("FileHash");
  const fileSize = convert("FileSize", values.get("FileSize") ?? "0", parseSize);
  const deriver = values.get("Deriver") ?? "unknown-deriver";
  const url = required(values, "URL");
  if (url === "") throw corrupt("URL is empty");
  const references = readReferences(values.get("References") ?? "");
  if (text.length > NARINFO_UNSIGNED_BYTES_MAX / CHARACTER_BYTES_MAX) {
    checkUnsigned([...lines, ...leftOut], values.get("References") ?? "", references);
  }
  const ca = values.get("CA") ?? "";
  if (!isContentAddress(ca)) throw corrupt(`bad CA ${excerpt(ca)}`);
  const narSize = convert("NarSize", required(values, "NarSize"), parseSize);
  if (narSize === 0) throw corrupt("NarSize is 0");
  return {
    storePath,
    baseName,
    storePathHash: hashOfBaseName(baseName),
    url,
    compression: convert("Compression", values.get("Compression") ?? "", parseCompression),
    ...(fileHash !== undefined && { fileHash: convert("FileHash", fileHash, parseFileHash) }),
    ...(fileSize > 0 && { fileSize }),
    narHash: convert("NarHash", required(values, "NarHash"), parseNarHash),
    narSize,
    references,
    ...(deriver !== "unknown-deriver" && { deriver: convert("Deriver", deriver, parseBaseName) }),
    signatures,
    lines,
  };
}

interface RawNarinfo {
  readonly lines: readonly NarinfoLine[];
  /** Signatures that are unreadable, or too many of one key name. */
  readonly leftOut: readonly NarinfoLine[];
  readonly values: ReadonlyMap<string, string>;
  readonly signatures: readonly Signature[];
}

function readLines(text: string): RawNarinfo {
  if (text.length > NARINFO_TEXT_MAX) throw corrupt(`it is over ${NARINFO_TEXT_MAX} characters`);
  if (CONTROL_REGEXP.test(text)) throw corrupt("it has a control character");
  // Like Nix, this detects a text that was cut within a line.
  if (!text.endsWith("\n")) throw corrupt("its last line is not ended");
  const lines: NarinfoLine[] = [];
  const leftOut: NarinfoLine[] = [];
  const values = new Map<string, string>();
  const signatures: Signature[] = [];
  const countsOfNames = new Map<string, number>();
  for (let start = 0; start < text.length;) {
    const end = text.indexOf("\n", start);
    const line = readLine(text.slice(start, end));
    start = end + 1;
    if (line.key === "Sig") {
      const signature = signatureOf(line.value);
      const count = signature && (countsOfNames.get(signature.keyName) ?? 0) + 1;
      if (signature === undefined || count === undefined || count > SIGNATURES_OF_NAME_MAX) {
        leftOut.push(line);
        continue;
      }
      countsOfNames.set(signature.keyName, count);
      signatures.push(signature);
    } else if (SINGLE_VALUED.has(line.key)) {
      if (values.has(line.key)) throw corrupt(`${line.key} is there twice`);
      values.set(line.key, line.value);
    }
    lines.push(line);
  }
  if (signatures.length > NARINFO_SIGNATURES_MAX) {
    throw corrupt(`it has over ${NARINFO_SIGNATURES_MAX} signatures`);
  }
  return { lines, leftOut, values, signatures };
}

function readLine(line: string): NarinfoLine {
  const colon = line.indexOf(":");
  const key = line.slice(0, Math.max(colon, 0));
  if (key !== "" && line.startsWith(": ", colon)) return { key, value: line.slice(colon + 2) };
  // No signature begins with a colon, so this one is left out.
  if (key === "Sig") return { key, value: line.slice(colon) };
  throw corrupt(`${excerpt(line)} is not "key: value"`);
}

function readReferences(value: string): readonly BaseName[] {
  const references: BaseName[] = [];
  for (const word of value.split(" ")) {
    if (word === "") continue;
    if (!isBaseName(word)) throw corrupt(`the reference ${excerpt(word)} is not a base name`);
    references.push(word);
  }
  if (references.length > NARINFO_REFERENCES_MAX) {
    throw corrupt(`it has over ${NARINFO_REFERENCES_MAX} references`);
  }
  return references;
}

/**
 * Bounds the unsigned bytes. Blanks and repetitions in the references are unsigned, so they count.
 */
function checkUnsigned(
  lines: readonly NarinfoLine[],
  referencesText: string,
  references: readonly BaseName[],
): void {
  let bytes = referencesText.length;
  for (const reference of new Set(references)) bytes -= reference.length + 1;
  for (const { key, value } of lines) {
    if (!SIGNED.has(key)) bytes += Buffer.byteLength(key) + Buffer.byteLength(value) + LINE_BYTES;
  }
  if (bytes > NARINFO_UNSIGNED_BYTES_MAX) {
    throw corrupt(`over ${NARINFO_UNSIGNED_BYTES_MAX} bytes of it are not signed`);
  }
}

function parseSize(text: string): number {
  const bytes = SIZE_REGEXP.test(text) ? Number(text) : NaN;
  if (Number.isSafeInteger(bytes)) return bytes;
  throw new Failure("corrupt", `Cannot read ${excerpt(text)} as a size`);
}

function required(values: ReadonlyMap<string, string>, key: string): string {
  const value = values.get(key);
  if (value === undefined) throw corrupt(`${key} is missing`);
  return value;
}

/** A parser's "bad-request" becomes "corrupt": the upstream sent the value, not the client. */
function convert<T>(key: string, value: string, parse: (text: string) => T): T {
  try {
    return parse(value);
  } catch (cause) {
    if (!(cause instanceof Failure)) throw cause;
    throw corrupt(`bad ${key} ${excerpt(value)}`, cause);
  }
}

function corrupt(state: string, cause?: Failure): Failure {
  return new Failure("corrupt", `Cannot read narinfo: ${state}`, {}, cause);
}

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
function isContentAddress(text: string): boolean {
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
