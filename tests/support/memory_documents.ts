import type { Bytes } from "../../src/base/bytes.ts";
import type { DocumentChange, DocumentRow } from "../../src/metadata/metadata_store.ts";
import type { DocumentPath } from "../../src/nix/document_name.ts";

export interface StoredDocument {
  readonly row: DocumentRow;
  readonly pieces: readonly Bytes[];
  readonly usedAtMs: number;
}

type Documents = Map<DocumentPath, StoredDocument>;

let lastId = 0;

/** The same number as the databases allow. */
const GOING_MAX = 128;

export function documentBytesOf(documents: Documents): number {
  return [...documents.values()].reduce((bytes, { row }) => bytes + row.bodyBytes, 0);
}

export function changeDocuments(documents: Documents, change: DocumentChange): void {
  if (change.kind === "put-document") return put(documents, change);
  const known = documents.get(change.path);
  if (known === undefined) return;
  const { row, usedAtMs } = known;
  if (change.kind === "remove-document") {
    documents.delete(row.path);
  } else if (change.kind === "touch-document") {
    documents.set(row.path, { ...known, usedAtMs: Math.max(usedAtMs, change.atMs) });
  } else {
    const checkedAtMs = Math.max(row.checkedAtMs, change.atMs);
    documents.set(row.path, { ...known, row: { ...row, checkedAtMs } });
  }
}

function put(documents: Documents, change: Extract<DocumentChange, { kind: "put-document" }>) {
  const { document, pieces, totalBytesMax, atMs } = change;
  if (document.bodyBytes > totalBytesMax) return;
  documents.delete(document.path);
  const fits = () => documentBytesOf(documents) + document.bodyBytes <= totalBytesMax;
  for (let gone = 0; gone < GOING_MAX && !fits(); gone++) {
    const coldest = [...documents.values()]
      .sort((a, b) => a.usedAtMs - b.usedAtMs || a.row.id - b.row.id)[0];
    if (coldest === undefined) break;
    documents.delete(coldest.row.path);
  }
  if (!fits()) return;
  documents.set(document.path, {
    row: { ...document, id: ++lastId, checkedAtMs: atMs },
    pieces: pieces.map((piece) => Uint8Array.from(piece)),
    usedAtMs: atMs,
  });
}
