import type { DocumentKind } from "../../nix/document_name.ts";

/** The rules for a kind of document. Only its shape can be checked: nobody signs it. */
export interface DocumentRule {
  /** The served content type: upstreams call logs anything from octets to HTML. */
  readonly type: string;
  /** True: anything but one JSON object is refused. */
  readonly isJson: boolean;
  /** The largest document that is kept. */
  readonly keptBytesMax: number;
  /** True: larger ones pass through. False: they are refused. */
  readonly mayBeLarger: boolean;
  /** True: larder requests it from the upstream again from time to time. */
  readonly mayChange: boolean;
}

/** Some hundred bytes each, in practice. */
const SMALL = { keptBytesMax: 1 << 20, mayBeLarger: false, mayChange: true } as const;

/** Most listings and logs have some KiB; the largest logs of nixpkgs have some hundred MiB. */
const LARGE = { keptBytesMax: 16 << 20, mayBeLarger: true, mayChange: false } as const;

const JSON_TYPE = { type: "application/json", isJson: true } as const;

export const DOCUMENT_RULES: Readonly<Record<DocumentKind, DocumentRule>> = {
  listing: { ...LARGE, ...JSON_TYPE },
  log: { ...LARGE, type: "text/plain; charset=utf-8", isJson: false },
  "build-trace": { ...SMALL, ...JSON_TYPE },
  realisation: { ...SMALL, ...JSON_TYPE },
  debuginfo: { ...SMALL, ...JSON_TYPE },
};

/** Time in which larder serves a document that may change without a new request. */
export const UNCHANGED_FOR_MS = 10 * 60 * 1_000;

/** A larger JSON text is checked at both ends only: parsing blocks requests. */
const PARSED_BYTES_MAX = 512 * 1024;

const WHITE_SPACE = " \t\r\n";

/** False for anything but one JSON object, as far as both ends show. */
export function looksLikeObject(bytes: Uint8Array): boolean {
  if (bytes.length > PARSED_BYTES_MAX) {
    return endOf(bytes, 0, 1) === "{" && endOf(bytes, -1, -1) === "}";
  }
  try {
    const value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** The first character from one end that is no white space. */
function endOf(bytes: Uint8Array, start: number, step: number): string {
  for (let at = start; bytes.at(at) !== undefined; at += step) {
    const character = String.fromCharCode(bytes.at(at) ?? 0);
    if (!WHITE_SPACE.includes(character)) return character;
  }
  return "";
}
