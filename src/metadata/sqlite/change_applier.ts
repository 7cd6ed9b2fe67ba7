import type { StorePathHash } from "../../nix/store_path.ts";
import { type Change, NarNameTaken, type NarRow } from "../metadata_store.ts";
import type { Statements } from "./statements.ts";

type ChangeOf<Kind extends Change["kind"]> = Extract<Change, { kind: Kind }>;

/** Turns lists of changes into one transaction. */
export class ChangeApplier {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /**
   * Applies each list whole or not at all, and returns at its place the error of each that
   * failed; an empty array says that none did.
   */
  transaction(lists: readonly (readonly Change[])[]): readonly unknown[] {
    try {
      this.#together(lists);
      return [];
    } catch (error) {
      if (lists.length === 1 || !isOfOneList(error)) return lists.map(() => error);
      // One of them is impossible: each on its own tells which.
      return lists.map((changes) => this.transaction([changes])[0]);
    }
  }

  #together(lists: readonly (readonly Change[])[]): void {
    const { begin, commit, rollback } = this.#statements;
    begin.run();
    try {
      for (const changes of lists) for (const change of changes) this.#change(change);
      commit.run();
    } catch (error) {
      try {
        rollback.run();
      } catch {
        // After a full disk and the like SQLite has rolled back by itself.
      }
      throw error;
    }
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
      case "nar-kept":
        statements.keepNar.run(change.file.fileHash, change.file.fileSize, change.narName);
        return;
      case "nar-gone":
        statements.narGone.run(change.narName);
        return;
      case "use-narinfo":
        statements.useNarinfo.run(change.atMs, change.storePathHash);
        return;
      case "use-nar":
        statements.useNar.run(change.atMs, change.narName);
        return;
      case "put-pin":
        statements.putPin.run(change.pin.storePathHash, change.pin.pinnedAtMs);
        return;
      case "remove-pin":
        statements.removePin.run(change.storePathHash);
        return;
    }
  }

  #putNarinfo({ row, references, nar, sources, atMs }: ChangeOf<"put-narinfo">): void {
    const statements = this.#statements;
    const narId = this.#narId(nar, Math.floor(atMs / 1_000));
    for (const { upstream, location } of sources) {
      statements.putSource.run(narId, upstream, location);
    }
    const pathId = this.#pathId(row.storePathHash);
    statements.putNarinfo.run(
      pathId,
      narId,
      row.body,
      row.trusted ? 1 : 0,
      row.ownSignature?.publicKey ?? null,
      row.ownSignature?.text ?? null,
    );
    statements.removeReferences.run(pathId);
    for (const reference of references) {
      statements.addReference.run(pathId, this.#pathId(reference));
    }
    statements.addUse.run(pathId, atMs);
  }

  #removeNarinfo(storePathHash: StorePathHash): void {
    const pathId = this.#statements.pathId.get(storePathHash)?.["id"] as number | undefined;
    if (pathId === undefined) return;
    this.#statements.removeReferences.run(pathId);
    this.#statements.removeUse.run(pathId);
    this.#statements.removeNarinfo.run(pathId);
  }

  #pathId(storePathHash: StorePathHash): number {
    const known = this.#statements.pathId.get(storePathHash)?.["id"] as number | undefined;
    return known ?? Number(this.#statements.addPath.run(storePathHash).lastInsertRowid);
  }

  #existingNarId(narName: string): number | undefined {
    return this.#statements.narId.get(narName)?.["id"] as number | undefined;
  }

  #narId(nar: NarRow, atS: number): number {
    const { name, narHash, narSize, fileHash = null, fileSize = null } = nar;
    const known = this.#statements.narId.get(name);
    if (known === undefined) {
      const added = this.#statements.addNar.run(name, narHash, narSize, fileHash, fileSize, atS);
      return Number(added.lastInsertRowid);
    }
    if (known["nar_hash"] !== narHash || known["nar_size"] !== narSize) {
      throw new NarNameTaken(name);
    }
    const id = Number(known["id"]);
    this.#statements.hearNar.run(atS, fileHash, fileSize, id);
    return id;
  }
}

/** SQLite's primary result code for a broken constraint. */
const SQLITE_CONSTRAINT = 19;

/** A locked database or a full disk fails every list, and trying each would only take longer. */
function isOfOneList(error: unknown): boolean {
  if (error instanceof NarNameTaken) return true;
  return error instanceof Error && "errcode" in error &&
    (Number(error.errcode) & 0xff) === SQLITE_CONSTRAINT;
}
