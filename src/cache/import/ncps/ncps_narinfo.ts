import { type Compression, COMPRESSIONS } from "../../../nix/compression.ts";
import type { Narinfo } from "../../../nix/narinfo.ts";
import { parseNarinfo } from "../../../nix/narinfo_parse.ts";

/** Columns of a narinfo of ncps. */
export interface NcpsNarinfoColumns {
  readonly store_path: string;
  readonly compression: string | null;
  readonly file_hash: string | null;
  readonly file_size: bigint | null;
  readonly nar_hash: string;
  readonly nar_size: bigint;
  readonly deriver: string | null;
  readonly system: string | null;
  readonly ca: string | null;
}

export interface NcpsNarinfoParts {
  readonly columns: NcpsNarinfoColumns;
  readonly references: readonly string[];
  readonly signatures: readonly string[];
  /** Compression of ncps's present file: ncps may have joined or cut the narinfo's file. */
  readonly compression: string;
}

/** The narinfo that ncps would serve. Throws a Failure where it is none. */
export function ncpsNarinfo(parts: NcpsNarinfoParts): Narinfo {
  const { columns, references, signatures, compression } = parts;
  const { store_path, file_hash, file_size, deriver, system, ca } = columns;
  const isSameFile = (columns.compression || "none") === compression;
  const extension = Object.hasOwn(COMPRESSIONS, compression)
    ? COMPRESSIONS[compression as Compression].extension
    : "";
  const lines: readonly (readonly [key: string, value: string | bigint | null | undefined])[] = [
    ["StorePath", store_path],
    // Every import replaces it.
    ["URL", `nar/ncps.nar${extension}`],
    ["Compression", compression],
    ["FileHash", isSameFile ? file_hash : undefined],
    ["FileSize", isSameFile ? file_size : undefined],
    ["NarHash", columns.nar_hash],
    ["NarSize", columns.nar_size],
    ["References", references.join(" ")],
    ["Deriver", deriver || undefined],
    ["System", system || undefined],
    ...signatures.map((signature) => ["Sig", signature] as const),
    ["CA", ca || undefined],
  ];
  const text = lines.filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => `${key}: ${value}\n`);
  return parseNarinfo(text.join(""));
}

/** A date and time as ncps writes them, in milliseconds; `undefined` for any other text. */
export function ncpsTime(text: unknown): number | undefined {
  const parts = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,3})?\d*\s?(Z|[+-]\d\d:?\d\d)?/
    .exec(String(text ?? ""));
  if (parts === null) return undefined;
  const [, date, time, fraction = "", zone = "Z"] = parts;
  const ms = Date.parse(`${date}T${time}${fraction}${zone.replace(/(\d\d)(\d\d)$/, "$1:$2")}`);
  return Number.isNaN(ms) ? undefined : ms;
}
