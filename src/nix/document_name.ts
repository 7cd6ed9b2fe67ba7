import { isBaseName, isStorePathHash } from "./store_path.ts";

declare const documentPathBrand: unique symbol;

/** The path of a document below a binary cache's URL, in characters that a URL needs not escape. */
export type DocumentPath = string & { readonly [documentPathBrand]: true };

/** The documents of a binary cache beside narinfos and NARs. */
export type DocumentKind = "listing" | "log" | "build-trace" | "realisation" | "debuginfo";

export interface DocumentName {
  readonly kind: DocumentKind;
  readonly path: DocumentPath;
}

// Nix's rule for names; a leading dot could make a dot segment.
const OUTPUT_NAME_REGEXP = /^[0-9A-Za-z+\-_?=][0-9A-Za-z+\-._?=]{0,210}$/;
const REALISATION_REGEXP = /^(sha256:[0-9a-f]{64})!(.*)$/;
// Linkers write 8 bytes (fast hashes) to 20 (SHA-1), or a given id. Nix names the document by the
// debug file, Hydra by the build ID alone.
const BUILD_ID_REGEXP = /^(?:[0-9a-f]{2}){4,64}(?:\.debug)?$/;

/** A document's path from the variable parts of a request's path. */
const PATHS: Readonly<Record<DocumentKind, (parts: readonly string[]) => string | undefined>> = {
  listing: ([hash = ""]) => isStorePathHash(hash) ? `${hash}.ls` : undefined,
  log: ([drv = ""]) => isDerivation(drv) ? `log/${drv}` : undefined,
  "build-trace": ([drv = "", output = ""]) =>
    isDerivation(drv) && OUTPUT_NAME_REGEXP.test(output)
      ? `build-trace-v2/${drv}/${output}.doi`
      : undefined,
  realisation: ([id = ""]) => {
    const output = REALISATION_REGEXP.exec(id)?.[2] ?? "";
    return OUTPUT_NAME_REGEXP.test(output) ? `realisations/${id}.doi` : undefined;
  },
  debuginfo: ([id = ""]) => BUILD_ID_REGEXP.test(id) ? `debuginfo/${id}` : undefined,
};

/** `undefined` if no binary cache can have a document of that name. */
export function documentName(
  kind: DocumentKind,
  parts: readonly string[],
): DocumentName | undefined {
  const path = PATHS[kind](parts);
  // A question mark is allowed in a name, but starts the query of a URL.
  return path === undefined
    ? undefined
    : { kind, path: path.replaceAll("?", "%3F") as DocumentPath };
}

function isDerivation(text: string): boolean {
  return isBaseName(text) && text.endsWith(".drv");
}
