import { type DocumentChange, DOCUMENTS_GOING_MAX } from "../document_keeper.ts";
import type { Statements } from "./statements.ts";

type PutDocument = Extract<DocumentChange, { kind: "put-document" }>;

/** The statements about documents. */
export const DOCUMENT_SQL = {
  documentBytes: "SELECT bytes FROM document_stock",
  removeDocument: "DELETE FROM document WHERE path = ?",
  removeColdestDocument: `DELETE FROM document
    WHERE id = (SELECT id FROM document ORDER BY used_at_ms, id LIMIT 1)`,
  addDocument: `INSERT INTO document (path, upstream, content_type, content_encoding, tag, size,
      may_change, checked_at_ms, used_at_ms, nar_name)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9)`,
  addDocumentPiece: "INSERT INTO document_piece (document_id, number, bytes) VALUES (?, ?, ?)",
  checkDocument: "UPDATE document SET checked_at_ms = max(checked_at_ms, ?) WHERE path = ?",
  touchDocument: "UPDATE document SET used_at_ms = max(used_at_ms, ?) WHERE path = ?",
} as const;

/** Call it within a transaction. */
export function changeDocument(statements: Statements, change: DocumentChange): void {
  switch (change.kind) {
    case "put-document":
      return putDocument(statements, change);
    case "check-document":
      statements.checkDocument.run(change.atMs, change.path);
      return;
    case "touch-document":
      statements.touchDocument.run(change.atMs, change.path);
      return;
    case "remove-document":
      statements.removeDocument.run(change.path);
      return;
  }
}

function putDocument(statements: Statements, change: PutDocument): void {
  const { document, pieces, totalBytesMax, atMs } = change;
  const { path, upstream, type, encoding = null, tag, bodyBytes, mayChange } = document;
  if (bodyBytes > totalBytesMax) return;
  statements.removeDocument.run(path);
  const fits = () => bytesOf(statements) + bodyBytes <= totalBytesMax;
  for (let gone = 0; gone < DOCUMENTS_GOING_MAX && !fits(); gone++) {
    if (Number(statements.removeColdestDocument.run().changes) === 0) break;
  }
  if (!fits()) return;
  const added = statements.addDocument.run(
    ...[path, upstream, type, encoding, tag, bodyBytes],
    ...[mayChange ? 1 : 0, atMs, document.narName ?? null],
  );
  for (const [number, bytes] of pieces.entries()) {
    statements.addDocumentPiece.run(added.lastInsertRowid, number, bytes);
  }
}

function bytesOf(statements: Statements): number {
  return Number(statements.documentBytes.get()?.["bytes"]);
}
