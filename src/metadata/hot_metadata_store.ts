import { LRUCache } from "lru-cache";
import type { DocumentPath } from "../nix/document_name.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { DocumentRow } from "./document_keeper.ts";
import type {
  Change,
  KeptNar,
  MetadataStore,
  NarinfoRow,
  NarRecord,
  NarSource,
  PinRoot,
} from "./metadata_store.ts";
import type { ColdEntry, Evicted, EvictionOrder, PendingFile, Stock } from "./space_keeper.ts";

/** Characters of narinfos held in memory: some ten thousand of them. */
const NARINFO_CHARS_MAX = 8 << 20;

const NARS_MAX = 10_000;

/**
 * Keeps what is asked for again and again in memory: a point read costs as much as the rest of
 * an answer. Our own changes go through here; of another process's `forgetAll` must tell.
 */
export class HotMetadataStore implements MetadataStore {
  readonly #inner: MetadataStore;
  readonly #narinfos = new LRUCache<StorePathHash, NarinfoRow>({
    maxSize: NARINFO_CHARS_MAX,
    sizeCalculation: (row) => row.body.length + 1,
  });
  readonly #nars = new LRUCache<NarName, NarRecord>({ max: NARS_MAX });
  /** Counts the changes, so that what was read before one is not remembered after it. */
  #epoch = 0;

  constructor(inner: MetadataStore) {
    this.#inner = inner;
  }

  async findNarinfo(storePathHash: StorePathHash): Promise<NarinfoRow | undefined> {
    const hot = this.#narinfos.get(storePathHash);
    if (hot !== undefined) return hot;
    const epoch = this.#epoch;
    const row = await this.#inner.findNarinfo(storePathHash);
    if (row !== undefined && epoch === this.#epoch) this.#narinfos.set(storePathHash, row);
    return row;
  }

  async findNar(narName: NarName): Promise<NarRecord | undefined> {
    const hot = this.#nars.get(narName);
    if (hot !== undefined) return hot;
    const epoch = this.#epoch;
    const record = await this.#inner.findNar(narName);
    if (record !== undefined && epoch === this.#epoch) this.#nars.set(narName, record);
    return record;
  }

  keptNars(prefix: string): Promise<readonly KeptNar[]> {
    return this.#inner.keptNars(prefix);
  }

  sourcesOf(narName: NarName): Promise<readonly NarSource[]> {
    return this.#inner.sourcesOf(narName);
  }

  narinfosOf(narName: NarName): Promise<readonly StorePathHash[]> {
    return this.#inner.narinfosOf(narName);
  }

  referencesOf(storePathHash: StorePathHash): Promise<readonly StorePathHash[]> {
    return this.#inner.referencesOf(storePathHash);
  }

  findPin(storePathHash: StorePathHash): Promise<PinRoot | undefined> {
    return this.#inner.findPin(storePathHash);
  }

  pins(): Promise<readonly PinRoot[]> {
    return this.#inner.pins();
  }

  stock(): Promise<Stock> {
    return this.#inner.stock();
  }

  coldest(countMax: number, after?: ColdEntry): Promise<readonly ColdEntry[]> {
    return this.#inner.coldest(countMax, after);
  }

  async evict(order: EvictionOrder): Promise<Evicted> {
    const evicted = await this.#inner.evict(order);
    for (const storePathHash of evicted.narinfos) this.#narinfos.delete(storePathHash);
    for (const { narName } of evicted.files) this.#nars.delete(narName);
    this.#epoch++;
    return evicted;
  }

  protect(pathsMax: number): Promise<boolean> {
    return this.#inner.protect(pathsMax);
  }

  areSumsRight(): Promise<boolean> {
    return this.#inner.areSumsRight();
  }

  recount(): Promise<boolean> {
    return this.#inner.recount();
  }

  pendingFiles(): Promise<readonly PendingFile[]> {
    return this.#inner.pendingFiles();
  }

  findDocument(path: DocumentPath): Promise<DocumentRow | undefined> {
    return this.#inner.findDocument(path);
  }

  documentPiece(id: number, number: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    return this.#inner.documentPiece(id, number);
  }

  documentBytes(): Promise<number> {
    return this.#inner.documentBytes();
  }

  archiveOf(narName: NarName): Promise<NarSource | undefined> {
    return this.#inner.archiveOf(narName);
  }

  async apply(changes: readonly Change[]): Promise<void> {
    this.#forget(changes);
    try {
      await this.#inner.apply(changes);
    } finally {
      // Again, for what was read while it was written.
      this.#forget(changes);
    }
  }

  /** Somebody else has written: nothing in memory is sure any more. */
  forgetAll(): void {
    this.#epoch++;
    this.#narinfos.clear();
    this.#nars.clear();
  }

  #forget(changes: readonly Change[]): void {
    for (const change of changes) {
      switch (change.kind) {
        case "put-narinfo":
          this.#narinfos.delete(change.row.storePathHash);
          this.#nars.delete(change.nar.name);
          break;
        case "remove-narinfo":
          this.#narinfos.delete(change.storePathHash);
          break;
        case "nar-kept":
        case "nar-condemned":
        case "nar-gone":
          this.#nars.delete(change.narName);
          break;
        case "put-source":
        case "nar-publishing":
        case "use-narinfo":
        case "use-nar":
        case "put-pin":
        case "remove-pin":
        case "put-document":
        case "check-document":
        case "use-document":
          continue;
      }
      this.#epoch++;
    }
  }
}
