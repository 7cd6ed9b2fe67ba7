import type { DocumentPath } from "../../nix/document_name.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type {
  ListedDocument,
  ListedLooseNar,
  ListedNarinfo,
  ListedSignedPath,
} from "../row_lister.ts";
import { readSignedPath, type SignedPathColumns } from "../rows.ts";
import type { Statements } from "./statements.ts";

/** The statements that list all rows, by their keys. */
export const LISTING_SQL = {
  listNarinfos: `SELECT p.hash, u.used_at_ms FROM path p JOIN narinfo_use u ON u.path_id = p.id
    WHERE p.hash > ? ORDER BY p.hash LIMIT ?`,
  listLooseNars: `SELECT n.name, l.used_at_ms, l.staged_until_ms
    FROM nar n JOIN loose_nar l ON l.nar_id = n.id WHERE n.name > ? ORDER BY n.name LIMIT ?`,
  listSignedPaths: `SELECT hash, digest, uploaded FROM signed_path
    WHERE hash > ? ORDER BY hash LIMIT ?`,
  listDocuments: "SELECT path, used_at_ms FROM document WHERE path > ? ORDER BY path LIMIT ?",
} as const;

export function listNarinfos(
  { listNarinfos }: Statements,
  after: string,
  countMax: number,
): readonly ListedNarinfo[] {
  return listNarinfos.all(after, countMax).map(({ hash, used_at_ms }) => ({
    storePathHash: hash as StorePathHash,
    usedAtMs: Number(used_at_ms),
  }));
}

export function listLooseNars(
  { listLooseNars }: Statements,
  after: string,
  countMax: number,
): readonly ListedLooseNar[] {
  return listLooseNars.all(after, countMax).map(({ name, used_at_ms, staged_until_ms }) => ({
    narName: name as NarName,
    usedAtMs: Number(used_at_ms),
    stagedUntilMs: Number(staged_until_ms),
  }));
}

export function listSignedPaths(
  { listSignedPaths }: Statements,
  after: string,
  countMax: number,
): readonly ListedSignedPath[] {
  return listSignedPaths.all(after, countMax).map((row) => ({
    storePathHash: row["hash"] as StorePathHash,
    ...readSignedPath(row as unknown as SignedPathColumns),
  }));
}

export function listDocuments(
  { listDocuments }: Statements,
  after: string,
  countMax: number,
): readonly ListedDocument[] {
  return listDocuments.all(after, countMax).map(({ path, used_at_ms }) => ({
    path: path as DocumentPath,
    usedAtMs: Number(used_at_ms),
  }));
}
