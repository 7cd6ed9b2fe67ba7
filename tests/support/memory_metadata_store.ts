import {
  type Change,
  type MetadataStore,
  type NarinfoRow,
  NarNameTaken,
  type NarRecord,
  type NarSource,
  type PinRoot,
} from "../../src/metadata/metadata_store.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";

interface Tables {
  readonly narinfos: Map<StorePathHash, NarinfoRow>;
  readonly references: Map<StorePathHash, readonly StorePathHash[]>;
  readonly uses: Map<StorePathHash, number>;
  readonly nars: Map<NarName, NarRecord>;
  readonly sources: Map<NarName, readonly NarSource[]>;
  readonly pins: Map<StorePathHash, PinRoot>;
}

/** The metadata store's contract in maps, for tests above the port. */
export class MemoryMetadataStore implements MetadataStore, AsyncDisposable {
  #tables: Tables = {
    narinfos: new Map(),
    references: new Map(),
    uses: new Map(),
    nars: new Map(),
    sources: new Map(),
    pins: new Map(),
  };
  #closed = false;

  async findNarinfo(storePathHash: StorePathHash): Promise<NarinfoRow | undefined> {
    return this.#open().narinfos.get(storePathHash);
  }

  async findNar(narName: NarName): Promise<NarRecord | undefined> {
    return this.#open().nars.get(narName);
  }

  async sourcesOf(narName: NarName): Promise<readonly NarSource[]> {
    return this.#open().sources.get(narName) ?? [];
  }

  async narinfosOf(narName: NarName): Promise<readonly StorePathHash[]> {
    const rows = [...this.#open().narinfos.values()];
    return rows.filter((row) => row.narName === narName).map((row) => row.storePathHash);
  }

  async referencesOf(storePathHash: StorePathHash): Promise<readonly StorePathHash[]> {
    return this.#open().references.get(storePathHash) ?? [];
  }

  async coldest(countMax: number): Promise<readonly StorePathHash[]> {
    const uses = [...this.#open().uses].sort(([, a], [, b]) => a - b);
    return uses.slice(0, countMax).map(([storePathHash]) => storePathHash);
  }

  async findPin(storePathHash: StorePathHash): Promise<PinRoot | undefined> {
    return this.#open().pins.get(storePathHash);
  }

  async pins(): Promise<readonly PinRoot[]> {
    return [...this.#open().pins.values()];
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

function applyTo(tables: Tables, change: Change): void {
  const { narinfos, references, uses, nars, pins } = tables;
  switch (change.kind) {
    case "put-narinfo": {
      const { storePathHash } = change.row;
      if (new Set(change.references).size < change.references.length) {
        throw new Error("Cannot put narinfo: a reference is there twice");
      }
      const known = nars.get(change.nar.name);
      const { narHash, narSize } = change.nar;
      if (known !== undefined && (known.narHash !== narHash || known.narSize !== narSize)) {
        throw new NarNameTaken(change.nar.name);
      }
      narinfos.set(storePathHash, change.row);
      references.set(storePathHash, change.references);
      uses.set(storePathHash, Math.max(change.atMs, uses.get(storePathHash) ?? 0));
      if (known?.kept === undefined) nars.set(change.nar.name, change.nar);
      for (const source of change.sources) putSource(tables, change.nar.name, source);
      return;
    }
    case "put-source":
      return putSource(tables, change.narName, change.source);
    case "remove-narinfo":
      for (const table of [narinfos, references, uses]) table.delete(change.storePathHash);
      return;
    case "nar-kept":
    case "nar-gone": {
      const nar = nars.get(change.narName);
      if (nar === undefined) return;
      const { kept: _, ...rest } = nar;
      nars.set(nar.name, change.kind === "nar-kept" ? { ...rest, kept: change.file } : rest);
      return;
    }
    case "use-narinfo":
      return use(tables, change.storePathHash, change.atMs);
    case "put-pin": {
      const { pin } = change;
      if (!pins.has(pin.storePathHash)) pins.set(pin.storePathHash, pin);
      return;
    }
    case "remove-pin":
      pins.delete(change.storePathHash);
      return;
    case "use-nar":
      for (const row of narinfos.values()) {
        if (row.narName === change.narName) use(tables, row.storePathHash, change.atMs);
      }
  }
}

function putSource({ nars, sources }: Tables, narName: NarName, source: NarSource): void {
  if (!nars.has(narName)) return;
  const known = sources.get(narName) ?? [];
  const same = known.findIndex(({ upstream }) => upstream === source.upstream);
  sources.set(narName, same < 0 ? [...known, source] : known.with(same, source));
}

function use({ uses }: Tables, storePathHash: StorePathHash, atMs: number): void {
  const before = uses.get(storePathHash);
  if (before !== undefined) uses.set(storePathHash, Math.max(before, atMs));
}
