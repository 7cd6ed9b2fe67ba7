import { Failure } from "../../base/failure.ts";
import type { MemberId } from "../../base/member_id.ts";
import { newStorageId, type StorageId } from "../../base/storage_id.ts";
import type { NarFinder, StorageIdKeeper } from "../../metadata/metadata_store.ts";
import type { SpaceKeeper } from "../../metadata/space_keeper.ts";
import { narNameOf } from "../../nix/stored_name.ts";
import type { NarLister } from "../../storage/nar_store.ts";
import type { StorageMark, StorageMarks } from "../../storage/storage_mark.ts";

/** A store without a mark, of whose first objects the database knows none, is another's. */
const OBJECTS_MAX = 1_000;

export interface StorageClaimDeps {
  readonly metadata:
    & StorageIdKeeper
    & Pick<NarFinder, "findNar">
    & Pick<SpaceKeeper, "pendingFiles">;
  readonly nars: NarLister;
  readonly marks: StorageMarks;
  /** Both in words, without secrets. */
  readonly names: { readonly store: string; readonly database: string };
  /**
   * True where the store and the database have one folder. A database that is named alike in the
   * mark had the place of this one, so it is gone.
   */
  readonly isBeside: boolean;
  /**
   * A living member with the same database. Default: nobody looks, as the store is the next one of
   * all members.
   */
  readonly otherMember?: () => Promise<MemberId | undefined>;
}

/**
 * The claim of a database on a store of NAR files. larder removes objects that its database does
 * not know: it may do so in the database's own store alone.
 */
export class StorageClaim {
  readonly #deps: StorageClaimDeps;
  #confirmed: Promise<void> | undefined;

  constructor(deps: StorageClaimDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves once the store is the database's own; a store without a mark becomes it. Throws a
   * Failure for another's store, and while the store does not answer.
   */
  async confirm(): Promise<void> {
    this.#confirmed ??= this.#confirm();
    try {
      await this.#confirmed;
    } catch (error) {
      this.#confirmed = undefined;
      throw error;
    }
  }

  /** Makes the store the database's own, whose ever it was. */
  async adopt(): Promise<void> {
    const { metadata, marks, names: { database } } = this.#deps;
    const id = await metadata.claimStorageId(newStorageId());
    await marks.replace({ id, database });
  }

  async #confirm(): Promise<void> {
    const { metadata, marks, names: { store, database }, isBeside } = this.#deps;
    const mark = await marks.read();
    if (mark === undefined) return await this.#claimUnmarked();
    const id = await metadata.storageId() ?? await this.#idOfBackup(mark);
    if (id !== mark.id) {
      if (!isBeside || mark.database !== database) throw foreignFiles(store, mark);
      await this.adopt();
    } else if (mark.database !== database) {
      await marks.replace({ id, database });
    }
  }

  async #claimUnmarked(): Promise<void> {
    const { metadata, marks, names: { store, database }, isBeside, otherMember } = this.#deps;
    const found = isBeside ? "ours" : await this.#ownership();
    if (found === "foreign") throw unknownFiles(store);
    const proposed = newStorageId();
    const id = await metadata.claimStorageId(proposed);
    // The database of an empty store may have its files elsewhere.
    const other = found === "empty" && id !== proposed ? await otherMember?.() : undefined;
    // A member that started at the same moment has marked the store by now, if it is the same.
    if (other !== undefined && await marks.read() === undefined) throw notShared(store, other);
    const claimed = await marks.claim({ id, database });
    if (claimed.id !== id) throw foreignFiles(store, claimed);
  }

  /** A backup from before ids knows objects of the store. No two objects have one name. */
  async #idOfBackup({ id }: StorageMark): Promise<StorageId | undefined> {
    if (await this.#ownership() !== "ours") return undefined;
    return await this.#deps.metadata.claimStorageId(id);
  }

  /** The owner of the objects in the store. "foreign": the database knows none of them. */
  async #ownership(): Promise<"ours" | "empty" | "foreign"> {
    const { metadata, nars } = this.#deps;
    const pending = new Set((await metadata.pendingFiles()).map(({ at }) => at));
    let objects = 0;
    for await (const { at } of nars.list("")) {
      if (pending.has(at)) return "ours";
      if ((await metadata.findNar(narNameOf(at)))?.kept?.at === at) return "ours";
      if (++objects === OBJECTS_MAX) return "foreign";
    }
    return objects === 0 ? "empty" : "foreign";
  }
}

const ADVICE = 'give that one with --cache-database-url, copy it with "larder migrate database", ' +
  'or take the files over with "larder fsck --adopt"';

function foreignFiles(store: string, { database }: StorageMark): Failure {
  const fact = `its NAR files belong to another database (${database})`;
  return new Failure("broken", `Cannot use ${store}: ${fact}; ${ADVICE}`);
}

function unknownFiles(store: string): Failure {
  const fact = "its NAR files belong to another database, as this one knows none of them";
  return new Failure("broken", `Cannot use ${store}: ${fact}; ${ADVICE}`);
}

function notShared(store: string, member: MemberId): Failure {
  const fact = `it is empty, and member ${member} uses this database with other NAR files`;
  const advice = "give all members one --cache-storage-s3-bucket, or one shared folder; " +
    'if this storage is the right one, run "larder fsck --adopt"';
  return new Failure("broken", `Cannot use ${store}: ${fact}; ${advice}`);
}
