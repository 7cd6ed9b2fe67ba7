import { NOBODY } from "../../base/member_id.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { narNameOf, publishIdOf } from "../../nix/stored_name.ts";
import {
  type Change,
  type ChangeOf,
  type DocumentChange,
  DOCUMENTS_GOING_MAX,
  IntentLost,
  Irreplaceable,
  isRefusal,
  isSameClaim,
  type NarinfoCondition,
  type NarinfoRow,
  NarNameTaken,
  type NarRow,
  NEVER_USED_AT_MS,
  Outdated,
  type PinRoot,
  ReservationLost,
} from "../metadata_store.ts";
import { type NarColumns, readNarRecord } from "../stored_rows.ts";
import { changeName, type Protection } from "./pins.ts";
import { REFERENCES_AT_ONCE, removeNarinfo, Unprepared } from "./reference_slices.ts";
import type { Statements } from "./statements.ts";
import { resultCodeOf, SQLITE_CONSTRAINT, type Transactions } from "./write_queue.ts";

/** A path, with the NAR of its narinfo. */
interface PathColumns {
  readonly id: number;
  readonly nar_id: number | null;
  readonly is_kept: number;
}

/** Applies lists of changes in one transaction. */
export class ChangeApplier {
  readonly #statements: Statements;
  readonly #protection: Protection;
  readonly #transactions: Pick<Transactions, "within">;

  constructor(
    statements: Statements,
    protection: Protection,
    transactions: Pick<Transactions, "within">,
  ) {
    this.#transactions = transactions;
    this.#statements = statements;
    this.#protection = protection;
  }

  /**
   * Applies each list whole or not at all. Returns the error of each failed list at its index; an
   * empty array when none failed. After a list that the database does not take, none is applied.
   */
  transaction(lists: readonly (readonly Change[])[]): readonly unknown[] {
    const keepsRevision = lists.every((changes) => changes.every(isTouch));
    try {
      this.#transactions.within(() => {
        for (const changes of lists) for (const change of changes) this.#change(change);
      }, { keepsRevision });
      return [];
    } catch (error) {
      if (lists.length === 1 || !isOfOneList(error)) return lists.map(() => error);
      return this.#oneByOne(lists);
    }
  }

  /** One list is impossible: each in its own transaction shows which. */
  #oneByOne(lists: readonly (readonly Change[])[]): readonly unknown[] {
    let locked: unknown;
    return lists.map((changes) => {
      // A later list may change the same row: it must not overtake.
      if (locked !== undefined) return locked;
      const [error] = this.transaction([changes]);
      if (error !== undefined && !isOfOneList(error)) locked = error;
      return error;
    });
  }

  #change(change: Change): void {
    const statements = this.#statements;
    switch (change.kind) {
      case "put-narinfo":
        return this.#putNarinfo(change);
      case "put-source": {
        const { upstream, location } = change.source;
        const narId = this.#existingNarId(change.narName);
        if (narId !== undefined) statements.putSource.run(narId, upstream, location);
        return;
      }
      case "remove-narinfo":
        return this.#removeNarinfo(change.storePathHash);
      case "remove-nar":
        return this.#removeNar(change.narName);
      case "stage-nar":
        return this.#stageNar(change);
      case "nar-publishing":
      case "nar-kept":
      case "nar-sealed":
      case "nar-broken":
      case "nar-marked":
      case "nar-taken":
      case "nar-stuck":
      case "nar-gone":
        return changeFile(statements, change);
      case "touch-narinfo":
        statements.touchNarinfo.run(change.atMs, change.storePathHash);
        return;
      case "touch-nar":
        statements.touchNar.run(change.atMs, change.narName);
        statements.touchLoose.run(change.atMs, change.narName);
        return;
      case "put-pin":
        return this.#putPin(change.pin);
      case "remove-pin":
        if (statements.removePin.run(change.storePathHash).changes !== 0) {
          this.#protection.startAgain();
        }
        return;
      case "roll-pin":
      case "unpin-name": {
        if (change.kind === "roll-pin") this.#protection.pinned(this.#pathId(change.storePathHash));
        if (changeName(statements, change)) this.#protection.startAgain();
        return;
      }
      case "put-signed":
        return this.#putSigned(change);
      case "forget-signed":
        statements.forgetSigned.run(change.storePathHash);
        return;
      case "put-document":
      case "check-document":
      case "touch-document":
      case "remove-document":
        return changeDocument(statements, change);
    }
  }

  #putSigned(change: ChangeOf<"put-signed">): void {
    const { storePathHash, digest, isUploaded, countMax, unlessOther = false } = change;
    const { findSigned, signedCounts, putSigned } = this.#statements;
    const known = findSigned.get(storePathHash)?.["digest"];
    if (known === digest) return;
    if (known !== undefined && unlessOther) throw new Outdated(storePathHash);
    const count = signedCounts.get()?.[isUploaded ? "uploaded" : "upstream"];
    if (known === undefined && Number(count) >= countMax) return;
    putSigned.run(storePathHash, digest, isUploaded ? 1 : 0);
  }

  #putPin({ storePathHash, pinnedAtMs, rolls }: PinRoot): void {
    this.#statements.putPin.run(storePathHash, pinnedAtMs, rolls ? 0 : 1);
    this.#protection.pinned(this.#pathId(storePathHash));
  }

  #stageNar({ nar, untilMs }: ChangeOf<"stage-nar">): void {
    const { id: narId } = this.#narId(nar);
    this.#statements.addLooseNar.run(NEVER_USED_AT_MS, narId);
    this.#statements.stageNar.run(untilMs, narId);
  }

  #putNarinfo(change: ChangeOf<"put-narinfo">): void {
    const { row, references, nar, sources, atMs } = change;
    const statements = this.#statements;
    const known = statements.findPath.get(row.storePathHash) as PathColumns | undefined;
    if (this.#isOutdated(change, known)) throw new Outdated(row.storePathHash);
    const { id: narId, isNew: isNewNar } = this.#narId(nar);
    for (const { upstream, location } of sources) {
      statements.putSource.run(narId, upstream, location);
    }
    const pathId = known?.id ?? this.#addPath(row.storePathHash);
    statements.putNarinfo.run(
      pathId,
      narId,
      row.body,
      row.trusted ? 1 : 0,
      row.ownSignature?.publicKey ?? null,
      row.ownSignature?.text ?? null,
    );
    const narIdBefore = known?.nar_id ?? undefined;
    this.#putReferences(pathId, references, known !== undefined);
    statements.addTouch.run(pathId, atMs, narId);
    if (known !== undefined) this.#protection.stored(pathId);
    if (!isNewNar) statements.removeLooseNar.run(narId);
    if (narIdBefore !== undefined && narIdBefore !== narId) {
      statements.addLooseNar.run(atMs, narIdBefore);
    }
  }

  /** Those of a large narinfo came before it. Throws Unprepared where they are not all there. */
  #putReferences(
    pathId: number,
    references: readonly StorePathHash[],
    isKnownPath: boolean,
  ): void {
    const { addKnownReference, addReference, countReferences, dropReferences, unmarkRest } =
      this.#statements;
    if (references.length > REFERENCES_AT_ONCE) {
      const count = Number(countReferences.get(pathId)?.["count"]);
      if (count !== references.length) throw new Unprepared();
      unmarkRest.run(pathId);
      return;
    }
    if (isKnownPath) {
      dropReferences.run(pathId, -1);
      unmarkRest.run(pathId);
    }
    for (const reference of references) {
      const { changes } = addKnownReference.run(pathId, reference);
      if (changes === 0) addReference.run(pathId, this.#addPath(reference));
    }
  }

  /**
   * Removes the narinfo that the change may replace, as its references are written anew. False where
   * the change is outdated. Call it within a transaction.
   */
  makeWay(change: ChangeOf<"put-narinfo">): boolean {
    const { storePathHash } = change.row;
    const known = this.#statements.findPath.get(storePathHash) as PathColumns | undefined;
    if (this.#isOutdated(change, known)) return false;
    if (known !== undefined && known.nar_id !== null) this.#removeNarinfo(storePathHash);
    return true;
  }

  #isOutdated(
    { row, onlyIf, unlessKept = false }: ChangeOf<"put-narinfo">,
    known: PathColumns | undefined,
  ): boolean {
    return unlessKept && known?.is_kept === 1 ||
      onlyIf !== undefined && !this.#holds(row, onlyIf);
  }

  #holds({ storePathHash, narName }: NarinfoRow, { body, at }: NarinfoCondition): boolean {
    const { findNarinfo, findNar } = this.#statements;
    if (findNarinfo.get(storePathHash)?.["body"] !== body) return false;
    const columns = findNar.get(narName) as NarColumns | undefined;
    return columns !== undefined && readNarRecord(columns).kept?.at === at;
  }

  #removeNarinfo(storePathHash: StorePathHash): void {
    const statements = this.#statements;
    const pathId = statements.pathId.get(storePathHash)?.["id"] as number | undefined;
    if (pathId === undefined) return;
    const narId = statements.narIdOfPath.get(pathId)?.["nar_id"];
    const use = statements.touchOf.get(pathId);
    removeNarinfo(statements, pathId);
    if (narId === undefined || use === undefined) return;
    statements.addLooseNar.run(Number(use["used_at_ms"]), Number(narId));
    // Paths that only its references reached are no longer protected.
    if (use["protected"] === 1) this.#protection.startAgain();
  }

  #removeNar(narName: string): void {
    const { removeUnusedNar, removeSources, removeLooseNar } = this.#statements;
    const narId = removeUnusedNar.get(narName)?.["id"] as number | undefined;
    if (narId === undefined) return;
    removeSources.run(narId);
    removeLooseNar.run(narId);
  }

  #pathId(storePathHash: StorePathHash): number {
    const known = this.#statements.pathId.get(storePathHash)?.["id"] as number | undefined;
    return known ?? this.#addPath(storePathHash);
  }

  #addPath(storePathHash: StorePathHash): number {
    return Number(this.#statements.addPath.run(storePathHash).lastInsertRowid);
  }

  #existingNarId(narName: string): number | undefined {
    return this.#statements.narId.get(narName)?.["id"] as number | undefined;
  }

  /** Most are new: so the row is added first, and read only if it is known. */
  #narId(nar: NarRow): { readonly id: number; readonly isNew: boolean } {
    const { name, narHash, narSize, fileHash = null, fileSize = null, seenAtMs = null } = nar;
    const statements = this.#statements;
    const added = statements.addNar.run(name, narHash, narSize, fileHash, fileSize, seenAtMs);
    if (added.changes !== 0) return { id: Number(added.lastInsertRowid), isNew: true };
    const columns = statements.findNar.get(name) as unknown as NarColumns;
    if (!isSameClaim(readNarRecord(columns), nar)) throw new NarNameTaken(name);
    if (seenAtMs !== null) statements.seeNar.run(seenAtMs, columns.id);
    return { id: columns.id, isNew: false };
  }
}

/** A locked database or a full disk fails every list: single transactions would fail too. */
function isOfOneList(error: unknown): boolean {
  return isRefusal(error) || error instanceof Unprepared ||
    resultCodeOf(error) === SQLITE_CONSTRAINT;
}

/** True for a use: no request waits for it, and no process holds it in memory. */
export function isTouch({ kind }: Change): boolean {
  return kind === "touch-narinfo" || kind === "touch-nar" || kind === "touch-document";
}

/** A change to the stored objects of a NAR. */
type FileChange = ChangeOf<Extract<Change["kind"], `nar-${string}`>>;

/** Call it within a transaction. Changes nothing where no narinfo ever named the NAR. */
function changeFile(statements: Statements, change: FileChange): void {
  const at = change.kind === "nar-kept" ? change.file.at : change.at;
  const narId = statements.narId.get(narNameOf(at))?.["id"] as number | undefined;
  if (narId === undefined) return;
  const id = publishIdOf(at);
  switch (change.kind) {
    case "nar-publishing":
      statements.publishNar.run(narId, id, change.owner);
      return;
    case "nar-kept":
      return keep(statements, narId, change);
    case "nar-sealed":
      statements.sealNar.run(change.seal, narId, id);
      return;
    case "nar-broken":
      statements.breakNar.run(change.atMs, narId);
      return;
    case "nar-marked":
      if (Number(statements.markNar.run(change.owner, narId, id).changes) === 0) return;
      statements.unkeepNar.run(narId);
      if (change.isLost) statements.loseNar.run(narId);
      statements.stageNar.run(0, narId);
      return;
    case "nar-taken":
      if (Number(statements.takeNar.run(NOBODY, narId, id).changes) === 0) throw new IntentLost(at);
      return;
    case "nar-stuck":
      statements.addStuck.run(narId, id, change.owner, change.fileSize);
      return;
    case "nar-gone":
      statements.settle.run(narId, id);
      return;
  }
}

function keep(statements: Statements, narId: number, change: ChangeOf<"nar-kept">): void {
  const { file, owner, atMs, reservedBytes, replaces } = change;
  const { at, seal = null, fileHash, fileSize, keptAtMs = null, form = null } = file;
  const id = publishIdOf(at);
  const intent = statements.settle.get(narId, id);
  if (intent?.["owner"] !== owner) throw new IntentLost(at);
  if (replaces !== undefined) {
    const { replaceableNar } = statements;
    const former = publishIdOf(replaces.at);
    if (replaceableNar.get(narId, former, replaces.quietSinceMs) === undefined) {
      throw new Irreplaceable(at);
    }
  }
  if (reservedBytes !== undefined) {
    const { changes } = statements.unreserve.run(reservedBytes, owner);
    if (Number(changes) === 0) throw new ReservationLost(at);
  }
  statements.markFormerNar.run(owner, narId, id);
  statements.keepNar.run(id, seal, fileHash, fileSize, keptAtMs, form, narId);
  statements.addLooseNar.run(atMs, narId);
}

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
function changeDocument(statements: Statements, change: DocumentChange): void {
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
