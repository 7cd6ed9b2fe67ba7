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
