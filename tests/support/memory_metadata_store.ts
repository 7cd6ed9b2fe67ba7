import {
  type Change,
  type DocumentRow,
  type GraphRow,
  type KeptNar,
  type MetadataStore,
  type NamedPath,
  type NamedPin,
  type NarinfoRow,
  type NarRecord,
  type NarSource,
  NEWEST_USE,
  type PathTimes,
  type PinNote,
  type PinRoot,
  type RowSweepOrder,
  type SignedPath,
  type SignedPathCounts,
  type SweptRows,
  type UsedNar,
} from "../../src/metadata/metadata_store.ts";
import type { Bytes } from "../../src/base/bytes.ts";
import type {
  ColdEntry,
  DatabaseSize,
  Evicted,
  EvictionOrder,
  ExpiryOrder,
  HeartbeatOrder,
  Member,
  PendingFile,
  ReserveOrder,
  Stock,
} from "../../src/metadata/space_keeper.ts";
import type { MemberId } from "../../src/base/member_id.ts";
import {
  type ExpiredSlots,
  type HistoryRow,
  mergedAmount,
  type PullRow,
  PULLS_MAX,
  type PullSummary,
} from "../../src/metadata/history_keeper.ts";
import type { DocumentPath } from "../../src/nix/document_name.ts";
import type { NarName, NarStem } from "../../src/nix/nar_name.ts";
import { nameInNarinfo } from "../../src/nix/narinfo_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { documentBytesOf } from "./memory_documents.ts";
import { beat, membersOf, reserve } from "./memory_ledger.ts";
import {
  applyTo,
  coldEntries,
  evictFrom,
  expireIn,
  stockOf,
  sweepFrom,
  type Tables,
  usedNarsIn,
} from "./memory_tables.ts";

/** The metadata store's contract in maps, for tests above the port. */
export class MemoryMetadataStore implements MetadataStore, AsyncDisposable {
  #tables: Tables = {
    narinfos: new Map(),
    references: new Map(),
    touches: new Map(),
    nars: new Map(),
    sources: new Map(),
    formerNames: new Map(),
    pins: new Map(),
    namedPins: [],
    loose: new Map(),
    staged: new Map(),
    pending: new Map(),
    documents: new Map(),
    members: new Map(),
    history: new Map(),
    pulls: new Map(),
    evicted: new Map(),
    signed: new Map(),
  };
  #closed = false;
  readonly #nowMs: () => number;

  /** `nowMs`: of the members' heartbeats. */
  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  async findNarinfo(storePathHash: StorePathHash): Promise<NarinfoRow | undefined> {
    return this.#open().narinfos.get(storePathHash);
  }

  async findNar(narName: NarName): Promise<NarRecord | undefined> {
    return this.#open().nars.get(narName);
  }

  async keptNars(prefix: string): Promise<readonly KeptNar[]> {
    return [...this.#open().nars.values()]
      .flatMap(({ name, kept }) => kept === undefined ? [] : [{ name, ...kept }])
      .filter(({ name }) => name.startsWith(prefix))
      .sort((a, b) => a.name < b.name ? -1 : 1);
  }

  async usedNars(countMax: number, after = NEWEST_USE): Promise<readonly UsedNar[]> {
    return usedNarsIn(this.#open(), countMax, after);
  }

  async sourcesOf(narName: NarName): Promise<readonly NarSource[]> {
    return this.#open().sources.get(narName) ?? [];
  }

  async narinfosOf(narName: NarName): Promise<readonly StorePathHash[]> {
    const rows = [...this.#open().narinfos.values()];
    return rows.filter((row) => row.narName === narName).map((row) => row.storePathHash);
  }

  async narOfFormerName(stem: NarStem): Promise<NarName | undefined> {
    const { formerNames, nars } = this.#open();
    const narName = formerNames.get(stem);
    if (narName !== undefined && !nars.has(narName)) formerNames.delete(stem);
    return formerNames.get(stem);
  }

  async formerNamesOf(narName: NarName): Promise<readonly NarStem[]> {
    const names = [...this.#open().formerNames].filter(([, name]) => name === narName);
    return names.map(([stem]) => stem).sort();
  }

  async putFormerNames(narName: NarName, stems: readonly NarStem[]): Promise<void> {
    const { formerNames, nars } = this.#open();
    if (nars.has(narName)) { for (const stem of stems) formerNames.set(stem, narName); }
  }

  async referencesOf(storePathHash: StorePathHash): Promise<readonly StorePathHash[]> {
    return this.#open().references.get(storePathHash) ?? [];
  }

  async pathTimes(storePathHash: StorePathHash): Promise<PathTimes> {
    const { touches, evicted } = this.#open();
    const usedAtMs = touches.get(storePathHash) || undefined;
    const evictedAtMs = evicted.get(storePathHash);
    return {
      ...usedAtMs === undefined ? {} : { usedAtMs },
      ...evictedAtMs === undefined ? {} : { evictedAtMs },
    };
  }

  async graphRows(
    storePathHashes: readonly StorePathHash[],
    signal?: AbortSignal,
  ): Promise<readonly GraphRow[]> {
    signal?.throwIfAborted();
    const { narinfos, nars, references } = this.#open();
    return storePathHashes.flatMap((storePathHash) => {
      const narName = narinfos.get(storePathHash)?.narName;
      if (narName === undefined) return [];
      const keptBytes = nars.get(narName)?.kept?.fileSize;
      const all = references.get(storePathHash) ?? [];
      return [{ storePathHash, narName, keptBytes, references: all }];
    });
  }

  async narinfoBodies(storePathHashes: readonly StorePathHash[], signal?: AbortSignal) {
    signal?.throwIfAborted();
    const rows = storePathHashes.flatMap((hash) => this.#open().narinfos.get(hash) ?? []);
    return new Map(rows.map(({ storePathHash, body }) => [storePathHash, body]));
  }

  async findNamed(
    text: string,
    countMax: number,
    signal?: AbortSignal,
  ): Promise<readonly NamedPath[]> {
    signal?.throwIfAborted();
    const rows = [...this.#open().narinfos.values()].reverse();
    return rows.map(({ storePathHash, body }) => ({
      storePathHash,
      name: nameInNarinfo(body) ?? "",
    }))
      .filter(({ name }) => name.toLowerCase().includes(text.toLowerCase())).slice(0, countMax);
  }

  /** It has no database. */
  async databaseSize(): Promise<DatabaseSize> {
    this.#open();
    return { bytes: 0, countedBytes: 0 };
  }

  async stock(except?: MemberId): Promise<Stock> {
    return stockOf(this.#open(), except);
  }

  async reserve(member: MemberId, order: ReserveOrder): Promise<number | undefined> {
    return reserve(this.#open(), member, order);
  }

  async beat(member: MemberId, order: HeartbeatOrder): Promise<number> {
    return beat(this.#open(), member, { ...order, nowMs: this.#nowMs() });
  }

  async members(observer: MemberId): Promise<readonly Member[]> {
    return membersOf(this.#open(), observer, this.#nowMs());
  }

  async leave(member: MemberId): Promise<void> {
    this.#open().members.delete(member);
  }

  async coldest(countMax: number, after?: string): Promise<readonly ColdEntry[]> {
    return coldEntries(this.#open(), countMax, after);
  }

  async evict(order: EvictionOrder): Promise<Evicted> {
    const tables = structuredClone(this.#open());
    const evicted = evictFrom(tables, order);
    this.#tables = tables;
    return evicted;
  }

  async sweepRows(order: RowSweepOrder): Promise<SweptRows> {
    const tables = structuredClone(this.#open());
    const swept = sweepFrom(tables, order);
    this.#tables = tables;
    return swept;
  }

  /** Has nothing to store: each call looks up the protected paths anew. */
  async protect(): Promise<boolean> {
    this.#open();
    return false;
  }

  /** They are counted each time. */
  async areSumsRight(): Promise<boolean> {
    this.#open();
    return true;
  }

  async recount(): Promise<boolean> {
    this.#open();
    return true;
  }

  async expireNars(order: ExpiryOrder): Promise<readonly PendingFile[]> {
    const tables = structuredClone(this.#open());
    const files = expireIn(tables, order);
    this.#tables = tables;
    return files;
  }

  async pendingFiles(): Promise<readonly PendingFile[]> {
    return [...this.#open().pending.values()];
  }

  async findSigned(storePathHash: StorePathHash): Promise<SignedPath | undefined> {
    return this.#open().signed.get(storePathHash);
  }

  async signedCounts(): Promise<SignedPathCounts> {
    const all = [...this.#open().signed.values()];
    const uploaded = all.filter(({ isUploaded }) => isUploaded).length;
    return { uploaded, upstream: all.length - uploaded };
  }

  async findPin(storePathHash: StorePathHash): Promise<PinRoot | undefined> {
    return (await this.pins()).find((pin) => pin.storePathHash === storePathHash);
  }

  async pins(): Promise<readonly PinRoot[]> {
    const { pins, namedPins } = this.#open();
    return [...pins.values()].map((pin) => {
      const names = namedPins.filter(({ storePathHash }) => storePathHash === pin.storePathHash)
        .map(({ name }) => name).sort();
      return { ...pin, ...(names.length === 0 ? {} : { names }) };
    });
  }

  async namedPins(): Promise<readonly NamedPin[]> {
    // Stable: those of a name stay in the order of pinning.
    return this.#open().namedPins.toSorted((one, other) => one.name < other.name ? -1 : 0);
  }

  async notePin(storePathHash: StorePathHash, note: PinNote): Promise<void> {
    const { pins } = this.#open();
    const pin = pins.get(storePathHash);
    if (pin === undefined) return;
    const { keepComplete: before, look = note.look, ...root } = pin;
    const keeps = note.keepComplete ?? before;
    pins.set(storePathHash, {
      ...root,
      ...keeps ? { keepComplete: true } : {},
      ...look === undefined ? {} : { look: note.look ?? look },
    });
  }

  async findDocument(path: DocumentPath): Promise<DocumentRow | undefined> {
    return this.#open().documents.get(path)?.row;
  }

  async documentPiece(id: number, number: number): Promise<Bytes | undefined> {
    const documents = [...this.#open().documents.values()];
    return documents.find(({ row }) => row.id === id)?.pieces[number];
  }

  async documentBytes(): Promise<number> {
    return documentBytesOf(this.#open().documents);
  }

  async debuginfoSourcesOf(narName: NarName): Promise<readonly NarSource[]> {
    const documents = [...this.#open().documents.values()];
    const upstreams = documents.filter(({ row }) => row.narName === narName)
      .map(({ row }) => row.upstream);
    return [...new Set(upstreams)].map((upstream) => ({ upstream, location: `nar/${narName}` }));
  }

  async recordHistory(
    rows: readonly HistoryRow[],
    expired: readonly ExpiredSlots[],
  ): Promise<void> {
    const { history } = this.#open();
    for (const row of rows) {
      const key = `${row.tier} ${row.atMs} ${row.figure}`;
      const known = history.get(key)?.amount;
      const amount = known === undefined ? row.amount : mergedAmount(row.figure, known, row.amount);
      history.set(key, { ...row, amount });
    }
    for (const [key, { tier, atMs }] of history) {
      if (expired.some((one) => one.tier === tier && atMs < one.beforeMs)) history.delete(key);
    }
  }

  async history(): Promise<readonly HistoryRow[]> {
    return [...this.#open().history.values()];
  }

  async recordPulls(rows: readonly PullRow[]): Promise<void> {
    const { pulls } = this.#open();
    for (const row of rows) if (!pulls.has(row.id)) pulls.set(row.id, row);
    for (const id of [...pulls.keys()].slice(0, -PULLS_MAX)) pulls.delete(id);
  }

  async pulls(countMax: number, of?: string): Promise<readonly PullSummary[]> {
    return [...this.#open().pulls.values()]
      .filter(({ client }) => of === undefined || client === of)
      .map(({ id, client, summary }) => ({ id, client, summary }))
      .reverse()
      .slice(0, countMax);
  }

  async findPull(id: string): Promise<PullRow | undefined> {
    return this.#open().pulls.get(id);
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const tables = structuredClone(this.#open());
    for (const change of changes) applyTo(tables, change);
    this.#tables = tables;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
  }

  #open(): Tables {
    if (this.#closed) throw new Error("Cannot use metadata: it is closed");
    return this.#tables;
  }
}
