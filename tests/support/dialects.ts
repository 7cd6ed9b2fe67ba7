import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import { type Compression, COMPRESSIONS } from "../../src/nix/compression.ts";
import { type FileHash, formatSha256 } from "../../src/nix/hash.ts";
import type { SecretKey } from "../../src/nix/signature.ts";
import { STORE_DIR } from "../../src/nix/store_path.ts";
import type { StoreObject } from "./store_object.ts";

/** A NAR file as an upstream keeps it. */
export interface NarFile {
  readonly compression: Compression;
  readonly bytes: Bytes;
  readonly fileHash: FileHash;
}

/** How one kind of binary cache names, describes and sends its NAR files. */
export interface DialectRow {
  readonly compression: Compression;
  /** Relative to the cache; may have a query. */
  narUrl(object: StoreObject, file: NarFile): string;
  /** The status of a NAR URL without its query. */
  readonly withoutQuery?: 400 | 404;
  /** Where the cache lives on its host; empty: at the root. */
  readonly base: string;
  readonly hasFileHash: boolean;
  readonly hasRanges: boolean;
  /** Whether NARs come with their length; else in chunks. */
  readonly hasLength: boolean;
  /** Content-Encodings that it uses when a request lists them; the first one wins. */
  readonly encodings: readonly ContentEncoding[];
  /** Into how many frames, one after the other, a NAR is compressed. */
  readonly frames: number;
  readonly writesEmptyReferences: boolean;
  readonly narType: string;
}

export type ContentEncoding = "zstd" | "br" | "gzip";

const PLAIN = {
  base: "",
  hasFileHash: false,
  hasRanges: true,
  hasLength: true,
  encodings: [],
  frames: 1,
  writesEmptyReferences: true,
  narType: "application/x-nix-nar",
} as const;

export const DIALECTS = {
  "nixos": {
    ...PLAIN,
    compression: "xz",
    hasFileHash: true,
    narUrl: (_object, file) => `nar/${file.fileHash}.nar${extensionOf(file)}`,
  },
  "cachix": {
    ...PLAIN,
    compression: "zstd",
    hasFileHash: true,
    narUrl: (object, file) => `nar/${uuidOf(object)}.nar${extensionOf(file)}`,
  },
  // Deduplicates: a NAR is put together from chunks that were compressed one by one.
  "attic": {
    ...PLAIN,
    compression: "zstd",
    base: "/team",
    hasRanges: false,
    hasLength: false,
    frames: 3,
    narUrl: (object) => `nar/${object.storePathHash}.nar`,
  },
  "harmonia": {
    ...PLAIN,
    compression: "none",
    hasFileHash: true,
    encodings: ["zstd"],
    writesEmptyReferences: false,
    withoutQuery: 404,
    narType: "application/x-nix-archive",
    narUrl: (object) => `nar/${object.narHash}.nar?hash=${object.storePathHash}`,
  },
  "nix-serve": {
    ...PLAIN,
    compression: "none",
    hasRanges: false,
    writesEmptyReferences: false,
    narType: "text/plain",
    narUrl: (object) => `nar/${object.storePathHash}-${object.narHash}.nar`,
  },
  // Its URL names a node of its content-addressed store, not the NAR.
  "snix": {
    ...PLAIN,
    compression: "none",
    encodings: ["zstd", "br", "gzip"],
    withoutQuery: 400,
    narUrl: (object) => `nar/snix-castore/${castoreNodeOf(object)}?narsize=${object.narSize}`,
  },
  // A folder of `nix copy --to file:///…`, behind a web server for static files.
  "directory": {
    ...PLAIN,
    compression: "xz",
    hasFileHash: true,
    narType: "application/octet-stream",
    narUrl: (_object, file) => `nar/${file.fileHash}.nar${extensionOf(file)}`,
  },
} as const satisfies Readonly<Record<string, DialectRow>>;

export type Dialect = keyof typeof DIALECTS;

export interface NarinfoParts {
  readonly row: DialectRow;
  readonly object: StoreObject;
  readonly file: NarFile;
  /** Absent: the narinfo is not signed. */
  readonly key?: SecretKey;
}

/** The narinfo's text, put together without the code under test but for the signature. */
export function narinfoText({ row, object, file, key }: NarinfoParts): string {
  const { storePath, narSize, references, deriver } = object;
  const narHash = formatSha256(object.narHash);
  const paths = references.map((baseName) => `${STORE_DIR}/${baseName}`);
  const fingerprint = `1;${storePath};${narHash};${narSize};${paths.join(",")}`;
  const hasReferences = references.length > 0 || row.writesEmptyReferences;
  return [
    `StorePath: ${storePath}`,
    `URL: ${row.narUrl(object, file)}`,
    `Compression: ${file.compression}`,
    row.hasFileHash && `FileHash: ${formatSha256(file.fileHash)}`,
    row.hasFileHash && `FileSize: ${file.bytes.length}`,
    `NarHash: ${narHash}`,
    `NarSize: ${narSize}`,
    hasReferences && `References: ${references.join(" ")}`,
    deriver !== undefined && `Deriver: ${deriver}`,
    key !== undefined && `Sig: ${key.sign(fingerprint).text}`,
  ].filter((line) => line !== false).join("\n") + "\n";
}

function extensionOf({ compression }: NarFile): string {
  return COMPRESSIONS[compression].extension;
}

function uuidOf(object: StoreObject): string {
  const digits = digestOf(object).toString("hex");
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]]
    .map(([start, end]) => digits.slice(start, end)).join("-");
}

/** The URL-safe base64 of a protobuf message, as long as the real ones. */
function castoreNodeOf(object: StoreObject): string {
  const node = [0x0a, 0x25, 0x12, 0x20, ...digestOf(object), 0x18, 0xda, 0x02];
  return Uint8Array.from(node).toBase64({ alphabet: "base64url", omitPadding: true });
}

function digestOf(object: StoreObject) {
  return createHash("sha256").update(`of ${object.baseName}`).digest();
}
