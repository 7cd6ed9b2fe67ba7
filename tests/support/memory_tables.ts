import {
  type Change,
  IntentLost,
  Irreplaceable,
  isSameClaim,
  type KeptFile,
  type NamedPin,
  NAR_GRACE_MS,
  type NarinfoRow,
  NarNameTaken,
  type NarRecord,
  type NarSource,
  NEVER_USED_AT_MS,
  Outdated,
  type PinRoot,
  ReservationLost,
  type RowSweepOrder,
  type SignedPath,
  type SweptRows,
  type UseCursor,
  type UsedNar,
} from "../../src/metadata/metadata_store.ts";
import type {
  ColdEntry,
  Evicted,
  EvictionOrder,
  ExpiryOrder,
  PendingFile,
  Stock,
} from "../../src/metadata/space_keeper.ts";
import type { HistoryRow, PullRow } from "../../src/metadata/history_keeper.ts";
import type { DocumentPath } from "../../src/nix/document_name.ts";
import type { NarName, NarStem } from "../../src/nix/nar_name.ts";
import { narNameOf, type StoredName } from "../../src/nix/stored_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { changeDocuments, type StoredDocument } from "./memory_documents.ts";
import { type MemberRow, reservedBytesOf, unreserve } from "./memory_ledger.ts";
import { type MemberId, NOBODY } from "../../src/base/member_id.ts";

/** The tables of a metadata store, as maps. */
export interface Tables {
  readonly narinfos: Map<StorePathHash, NarinfoRow>;
  readonly references: Map<StorePathHash, readonly StorePathHash[]>;
  readonly touches: Map<StorePathHash, number>;
  readonly nars: Map<NarName, NarRecord>;
  readonly sources: Map<NarName, readonly NarSource[]>;
  readonly formerNames: Map<NarStem, NarName>;
  readonly pins: Map<StorePathHash, PinRoot>;
  /** In the order of pinning. */
  readonly namedPins: NamedPin[];
  /** NARs that no narinfo names, kept or not, by their last use. */
  readonly loose: Map<NarName, number>;
  /** Uploaded NARs whose narinfo has not come: until when they stay. */
  readonly staged: Map<NarName, number>;
  readonly pending: Map<StoredName, PendingFile>;
  readonly documents: Map<DocumentPath, StoredDocument>;
  readonly members: Map<MemberId, MemberRow>;
  /** By tier, time and figure. */
  readonly history: Map<string, HistoryRow>;
  readonly pulls: Map<string, PullRow>;
  readonly evicted: Map<StorePathHash, number>;
  readonly signed: Map<StorePathHash, SignedPath>;
}

function isOutdated(
  { narinfos, nars }: Tables,
  { row, nar, onlyIf, unlessKept }: Extract<Change, { kind: "put-narinfo" }>,
): boolean {
  const before = narinfos.get(row.storePathHash);
  if (unlessKept && before !== undefined && nars.get(before.narName)?.kept !== undefined) {
    return true;
  }
  if (onlyIf === undefined) return false;
  return before?.body !== onlyIf.body || nars.get(nar.name)?.kept?.at !== onlyIf.at;
}

/** Applies one change; throws where it is impossible. */
export function applyTo(tables: Tables, change: Change): void {
  const { narinfos, references, touches, nars, pins } = tables;
  switch (change.kind) {
    case "put-narinfo": {
      const { storePathHash } = change.row;
      if (new Set(change.references).size < change.references.length) {
        throw new Error("Cannot put narinfo: a reference is there twice");
      }
      const known = nars.get(change.nar.name);
      const before = narinfos.get(storePathHash)?.narName;
      if (known !== undefined && !isSameClaim(known, change.nar)) {
        throw new NarNameTaken(change.nar.name);
      }
      if (isOutdated(tables, change)) throw new Outdated(storePathHash);
      narinfos.set(storePathHash, change.row);
      references.set(storePathHash, change.references);
      touches.set(storePathHash, Math.max(change.atMs, touches.get(storePathHash) ?? 0));
      nars.set(change.nar.name, seen(known ?? change.nar, change.nar.seenAtMs));
      for (const source of change.sources) putSource(tables, change.nar.name, source);
      tables.loose.delete(change.nar.name);
      tables.staged.delete(change.nar.name);
      if (before !== undefined) addLooseNar(tables, before, change.atMs);
      return;
    }
    case "put-source":
      return putSource(tables, change.narName, change.source);
    case "remove-narinfo": {
      const { storePathHash } = change;
      return dropNarinfo(tables, storePathHash, touches.get(storePathHash) ?? 0);
    }
    case "remove-nar":
      return removeNar(tables, change.narName);
    case "stage-nar":
      return stage(tables, change);
    case "nar-publishing":
    case "nar-kept":
    case "nar-sealed":
    case "nar-broken":
    case "nar-marked":
    case "nar-taken":
    case "nar-stuck":
    case "nar-gone":
      return changeFile(tables, change);
    case "touch-narinfo":
      return use(tables, change.storePathHash, change.atMs);
    case "put-pin": {
      const { names: _, keepComplete: _keeps, look: _look, ...pin } = change.pin;
      putPin(tables, pin);
      return;
    }
    case "roll-pin": {
      const { kind: _, ...named } = change;
      const { name, storePathHash, pinnedAtMs, keep } = named;
      putPin(tables, { storePathHash, pinnedAtMs, rolls: true });
      const isSame = (one: NamedPin) => one.name === name && one.storePathHash === storePathHash;
      dropNamed(tables, tables.namedPins.filter(isSame));
      const others = tables.namedPins.map((one) => one.name === name ? { ...one, keep } : one);
      tables.namedPins.splice(0, Infinity, ...others, named);
      rollOff(tables, name, keep);
      return;
    }
    case "unpin-name":
      return rollOff(tables, change.name, 0);
    case "put-signed":
      return putSigned(tables, change);
    case "forget-signed":
      tables.signed.delete(change.storePathHash);
      return;
    case "remove-pin": {
      const { storePathHash } = change;
      pins.delete(storePathHash);
      dropNamed(tables, tables.namedPins.filter((one) => one.storePathHash === storePathHash));
      return;
    }
    case "touch-nar":
      for (const row of narinfos.values()) {
        if (row.narName === change.narName) use(tables, row.storePathHash, change.atMs);
      }
      if (tables.loose.has(change.narName)) {
        const before = tables.loose.get(change.narName) ?? 0;
        tables.loose.set(change.narName, Math.max(before, change.atMs));
      }
      return;
    case "put-document":
    case "check-document":
    case "touch-document":
    case "remove-document":
      changeDocuments(tables.documents, change);
  }
}

function putPin({ pins }: Tables, pin: PinRoot): void {
  const known = pins.get(pin.storePathHash);
  const { storePathHash, pinnedAtMs } = known ?? pin;
  const rolls = pin.rolls && (known === undefined || known.rolls);
  pins.set(storePathHash, { storePathHash, pinnedAtMs, ...(rolls ? { rolls } : {}) });
}

function rollOff(tables: Tables, name: string, keep: number): void {
  const ofName = tables.namedPins.filter((one) => one.name === name);
  const gone = ofName.slice(0, Math.max(0, ofName.length - keep));
  dropNamed(tables, gone);
  for (const { storePathHash } of gone) {
    const isHeld = tables.namedPins.some((one) => one.storePathHash === storePathHash);
    if (!isHeld && tables.pins.get(storePathHash)?.rolls) tables.pins.delete(storePathHash);
  }
}

function dropNamed({ namedPins }: Tables, gone: readonly NamedPin[]): void {
  for (const one of gone) namedPins.splice(namedPins.indexOf(one), 1);
}

function putSigned({ signed }: Tables, change: Extract<Change, { kind: "put-signed" }>): void {
  const { storePathHash, digest, isUploaded, countMax, unlessOther = false } = change;
  const known = signed.get(storePathHash);
  if (known?.digest === digest) return;
  if (known !== undefined && unlessOther) throw new Outdated(storePathHash);
  const count = [...signed.values()].filter((one) => one.isUploaded === isUploaded).length;
  if (known === undefined && count >= countMax) return;
  signed.set(storePathHash, { digest, isUploaded });
}

function stage(tables: Tables, { nar, untilMs }: Extract<Change, { kind: "stage-nar" }>): void {
  const { nars, loose, staged } = tables;
  const known = nars.get(nar.name);
  if (known !== undefined && !isSameClaim(known, nar)) throw new NarNameTaken(nar.name);
  if (known === undefined) nars.set(nar.name, nar);
  addLooseNar(tables, nar.name, NEVER_USED_AT_MS);
  if (loose.has(nar.name)) staged.set(nar.name, untilMs);
}

function removeNar({ nars, narinfos, pending, sources, loose, staged }: Tables, name: NarName) {
  const isNamed = [...narinfos.values()].some(({ narName }) => narName === name);
  const isPending = [...pending.keys()].some((at) => narNameOf(at) === name);
  if (isNamed || isPending || nars.get(name)?.kept !== undefined) return;
  for (const table of [nars, sources, loose, staged]) table.delete(name);
}

function putSource({ nars, sources }: Tables, narName: NarName, source: NarSource): void {
  if (!nars.has(narName)) return;
  const known = sources.get(narName) ?? [];
  const same = known.findIndex(({ upstream }) => upstream === source.upstream);
  sources.set(narName, same < 0 ? [...known, source] : known.with(same, source));
}

function use({ touches }: Tables, storePathHash: StorePathHash, atMs: number): void {
  const before = touches.get(storePathHash);
  if (before !== undefined) touches.set(storePathHash, Math.max(before, atMs));
}

function changeFile(
  tables: Tables,
  change: Extract<Change, { kind: `nar-${string}` }>,
): void {
  const { nars, pending } = tables;
  const at = change.kind === "nar-kept" ? change.file.at : change.at;
  const narName = narNameOf(at);
  const nar = nars.get(narName);
  if (nar === undefined) return;
  const { kept, ...rest } = nar;
  switch (change.kind) {
    case "nar-publishing":
      pending.set(at, { at, owner: change.owner, fileSize: 0 });
      return;
    case "nar-kept": {
      const { owner } = change;
      if (pending.get(at)?.owner !== owner) throw new IntentLost(at);
      const { replaces } = change;
      const isReplaceable = replaces === undefined ||
        kept?.at === replaces.at && (nar.brokenAtMs ?? 0) < replaces.quietSinceMs;
      if (!isReplaceable) throw new Irreplaceable(at);
      if (!unreserve(tables, owner, change.reservedBytes)) throw new ReservationLost(at);
      pending.delete(at);
      if (kept !== undefined && kept.at !== at) mark(tables, kept, owner);
      const isMade = change.file.form !== undefined && kept?.form === undefined;
      const came = isMade && kept?.keptAtMs !== undefined ? { cameAtMs: kept.keptAtMs } : {};
      nars.set(narName, { ...rest, kept: { ...change.file, ...came } });
      return addLooseNar(tables, narName, change.atMs);
    }
    case "nar-sealed":
      if (kept?.at === at) nars.set(narName, { ...rest, kept: { ...kept, seal: change.seal } });
      return;
    case "nar-broken":
      nars.set(narName, { ...nar, brokenAtMs: Math.max(nar.brokenAtMs ?? 0, change.atMs) });
      return;
    case "nar-marked":
      if (kept?.at !== at) return;
      mark(tables, kept, change.owner);
      nars.set(
        narName,
        change.isLost && rest.seenAtMs !== undefined ? { ...rest, seenAtMs: 0 } : rest,
      );
      tables.staged.delete(narName);
      return;
    case "nar-taken": {
      const taken = pending.get(at);
      if (taken === undefined) throw new IntentLost(at);
      pending.set(at, { ...taken, owner: NOBODY });
      return;
    }
    case "nar-stuck":
      return mark(tables, { at, fileSize: change.fileSize }, change.owner);
    case "nar-gone":
      pending.delete(at);
  }
}

function seen(nar: NarRecord, atMs: number | undefined): NarRecord {
  if (atMs === undefined) return nar;
  return { ...nar, seenAtMs: Math.max(nar.seenAtMs ?? 0, atMs) };
}

function mark(
  { pending }: Tables,
  { at, fileSize }: Pick<KeptFile, "at" | "fileSize">,
  owner: string,
): void {
  pending.set(at, { at, owner, fileSize });
}

/** The NAR that loses its last narinfo so counts as used at `usedAtMs`. */
function dropNarinfo(tables: Tables, storePathHash: StorePathHash, usedAtMs: number): void {
  const { narinfos, references, touches } = tables;
  const narName = narinfos.get(storePathHash)?.narName;
  for (const table of [narinfos, references, touches]) table.delete(storePathHash);
  if (narName !== undefined) addLooseNar(tables, narName, usedAtMs);
}

function sharersOf({ narinfos }: Tables, narName: NarName): number {
  return [...narinfos.values()].filter((row) => row.narName === narName).length;
}

function isNamed({ narinfos }: Tables, narName: NarName): boolean {
  for (const row of narinfos.values()) if (row.narName === narName) return true;
  return false;
}

function addLooseNar(tables: Tables, narName: NarName, usedAtMs: number): void {
  const { nars, loose } = tables;
  if (!nars.has(narName) || isNamed(tables, narName)) return;
  loose.set(narName, Math.max(usedAtMs, loose.get(narName) ?? -Infinity));
}

function protectedBy({ pins, references }: Tables): ReadonlySet<StorePathHash> {
  const seen = new Set(pins.keys());
  for (const path of seen) for (const one of references.get(path) ?? []) seen.add(one);
  return seen;
}

/** The sums over all that is kept. */
export function stockOf(tables: Tables, except?: MemberId): Stock {
  const kept = [...tables.nars.values()].flatMap((nar) => nar.kept === undefined ? [] : [nar]);
  const guarded = protectedBy(tables);
  const names = new Set(
    [...tables.narinfos.values()].filter((row) => guarded.has(row.storePathHash))
      .map((row) => row.narName),
  );
  const sum = (nars: readonly NarRecord[]) =>
    nars.reduce((bytes, nar) => bytes + (nar.kept?.fileSize ?? 0), 0);
  return {
    keptBytes: sum(kept),
    keptFiles: kept.length,
    pendingBytes: [...tables.pending.values()].reduce((bytes, one) => bytes + one.fileSize, 0),
    protectedBytes: sum(kept.filter((nar) => names.has(nar.name))),
    reservedBytes: reservedBytesOf(tables, except),
  };
}

/** Kept NARs, those of the newest uses first. */
export function usedNarsIn(
  { touches, narinfos, nars }: Tables,
  countMax: number,
  after: UseCursor,
): readonly UsedNar[] {
  return [...touches].map(([path, usedAtMs], id) => ({ path, cursor: { usedAtMs, id } }))
    .flatMap(({ path, cursor }) => {
      const nar = nars.get(narinfos.get(path)?.narName as NarName);
      if (nar?.kept === undefined) return [];
      const { kept: { form, fileSize }, brokenAtMs } = nar;
      return [{
        narName: nar.name,
        usedAtMs: cursor.usedAtMs,
        fileSize,
        cursor,
        ...form === undefined ? {} : { form },
        ...brokenAtMs === undefined ? {} : { brokenAtMs },
      }];
    })
    .filter(({ cursor: { usedAtMs, id } }) =>
      usedAtMs < after.usedAtMs || usedAtMs === after.usedAtMs && id < after.id
    )
    .sort((a, b) => b.usedAtMs - a.usedAtMs || b.cursor.id - a.cursor.id)
    .slice(0, countMax);
}

/** Entries that may be evicted, in order; the ids are places in that order. */
export function coldEntries(
  tables: Tables,
  countMax: number,
  after = "-1",
): readonly ColdEntry[] {
  const guarded = protectedBy(tables);
  const bytesOf = (narName: NarName) => tables.nars.get(narName)?.kept?.fileSize ?? 0;
  const narinfos = [...tables.touches].filter(([path]) => !guarded.has(path))
    .map(([storePathHash, usedAtMs]) => {
      const narName = tables.narinfos.get(storePathHash)?.narName as NarName;
      const sharers = sharersOf(tables, narName);
      return { storePathHash, narName, keptBytes: bytesOf(narName), sharers, usedAtMs };
    });
  const evictable = [...tables.loose].filter(([narName]) => !tables.staged.has(narName));
  const loose = evictable.map(([narName, usedAtMs]) => (
    { narName, keptBytes: bytesOf(narName), sharers: 0, usedAtMs }
  ));
  const all = [...narinfos, ...loose]
    .filter(({ narName }) => tables.nars.get(narName)?.kept !== undefined)
    .sort((a, b) => a.usedAtMs - b.usedAtMs)
    .map((entry, index) => ({ ...entry, cursor: String(index) }));
  return all.slice(Number(after) + 1).slice(0, countMax);
}

/** Marks the staged files whose time is over. */
export function expireIn(tables: Tables, order: ExpiryOrder): readonly PendingFile[] {
  const { atMs, spared, owner } = order;
  return [...tables.staged].flatMap(([name, untilMs]) => {
    const kept = tables.nars.get(name)?.kept;
    if (kept === undefined || untilMs > atMs || spared.has(name)) return [];
    applyTo(tables, { kind: "nar-marked", at: kept.at, owner });
    return [{ at: kept.at, owner, fileSize: kept.fileSize }];
  });
}

/** Removes the coldest entries as the order says. */
export function evictFrom(tables: Tables, order: EvictionOrder): Evicted {
  const narinfos: StorePathHash[] = [];
  const files: PendingFile[] = [];
  let [bytes, entries, youngestMs] = [0, 0, -Infinity];
  for (const { storePathHash, narName, usedAtMs } of coldEntries(tables, Infinity)) {
    if (entries >= order.entriesMax || bytes >= order.bytesMin) break;
    if (usedAtMs >= (order.usedBeforeMs ?? Infinity)) break;
    if (order.spared.has(narName)) continue;
    entries++;
    youngestMs = usedAtMs;
    if (storePathHash !== undefined) {
      dropNarinfo(tables, storePathHash, usedAtMs);
      narinfos.push(storePathHash);
    }
    const kept = tables.nars.get(narName)?.kept;
    if (kept === undefined || isNamed(tables, narName)) continue;
    const { at, fileSize } = kept;
    applyTo(tables, { kind: "nar-marked", at, owner: order.owner });
    files.push({ at, owner: order.owner, fileSize });
    bytes += fileSize;
  }
  const countMax = Math.ceil(order.entriesMax / 4);
  for (const storePathHash of emptiesOf(tables, order.spared, youngestMs).slice(0, countMax)) {
    dropNarinfo(tables, storePathHash, tables.touches.get(storePathHash) ?? 0);
    narinfos.push(storePathHash);
  }
  const { atMs } = order;
  if (atMs !== undefined) { for (const path of narinfos) tables.evicted.set(path, atMs); }
  return { narinfos, files, entries, settled: true };
}

/** The coldest narinfos without a NAR file, but for those that were used since. */
function emptiesOf(
  tables: Tables,
  spared: ReadonlySet<NarName>,
  sinceMs: number,
): readonly StorePathHash[] {
  const guarded = protectedBy(tables);
  const isEmpty = (path: StorePathHash) => {
    const narName = tables.narinfos.get(path)?.narName as NarName;
    return tables.nars.get(narName)?.kept === undefined && !spared.has(narName);
  };
  return [...tables.touches]
    .filter(([path, usedAtMs]) => usedAtMs <= sinceMs && !guarded.has(path) && isEmpty(path))
    .toSorted(([, a], [, b]) => a - b)
    .map(([path]) => path);
}

/** Removes one batch of rows without a request; store paths are no rows of their own here. */
export function sweepFrom(tables: Tables, order: RowSweepOrder): SweptRows {
  const { unusedSinceMs, rowsMax, spared } = order;
  const narinfos = emptiesOf(tables, spared, unusedSinceMs).slice(0, rowsMax);
  for (const path of narinfos) dropNarinfo(tables, path, unusedSinceMs + NAR_GRACE_MS);
  const nothing = { narinfos, nars: [], paths: 0, settled: true };
  if (narinfos.length > 0) return { ...nothing, next: "" };
  const nars = [...tables.loose]
    .filter(([name, usedAtMs]) => usedAtMs <= unusedSinceMs && isNotKept(tables, name))
    .map(([name]) => name)
    .filter((name) => !spared.has(name))
    .slice(0, rowsMax);
  for (const name of nars) {
    for (const table of [tables.loose, tables.nars, tables.sources]) table.delete(name);
  }
  return { ...nothing, nars, ...nars.length > 0 ? { next: "" } : {} };
}

function isNotKept({ nars, pending }: Tables, narName: NarName): boolean {
  if (nars.get(narName)?.kept !== undefined) return false;
  return ![...pending.keys()].some((at) => narNameOf(at) === narName);
}
