import { isDeepStrictEqual } from "node:util";
import pLimit from "p-limit";
import { type MemberId, newMemberId } from "../base/member_id.ts";
import {
  type Change,
  type DocumentFacts,
  type DocumentRow,
  isSameClaim,
  type KeptFile,
  type ListedDocument,
  type ListedLooseNar,
  type ListedNarinfo,
  type ListedSignedPath,
  type MetadataStore,
  type NamedPin,
  type NarRecord,
  type NarRow,
  type PinRoot,
  type RowLister,
} from "./metadata_store.ts";
import { PULLS_MAX } from "./history_keeper.ts";

/** Rows of one page: each takes some queries. */
const PAGE_ROWS = 256;

const ROWS_AT_ONCE = 16;

/** Paths of one transaction that protects closures. */
const PROTECTED_AT_ONCE = 500;

export interface CopyDeps {
  readonly from: MetadataStore & RowLister;
  readonly to: MetadataStore & RowLister;
  /** Called before each page. Throws unless `to` is a copy alone, and nobody uses it. */
  readonly confirm: () => Promise<void>;
}

export interface CopyProgress {
  /** Rows that were compared in this pass. */
  readonly compared: number;
  /** Rows that differed, and are copied now. */
  readonly copied: number;
  /** Rows that the old database has no more, and that are removed from the new one. */
  readonly removed: number;
}

/**
 * Makes one database a copy of another, row by row. It compares equal rows, and leaves them. So a
 * copy that ended early goes on where it was, and a server may use the old database meanwhile. It
 * removes the rows that the old one lacks, as a removed pin must not come back.
 */
export class MetadataCopy {
  readonly #deps: CopyDeps;
  readonly #owner: MemberId = newMemberId("migrate", Deno.pid);
  readonly #limit = pLimit(ROWS_AT_ONCE);
  #compared = 0;
  #copied = 0;
  #removed = 0;

  constructor(deps: CopyDeps) {
    this.#deps = deps;
  }

  get progress(): CopyProgress {
    return { compared: this.#compared, copied: this.#copied, removed: this.#removed };
  }

  /**
   * Compares everything once, both ways, copies the rows that differ and removes those that are
   * gone. Throws the signal's reason.
   */
  async pass(signal: AbortSignal): Promise<CopyProgress> {
    [this.#compared, this.#copied, this.#removed] = [0, 0, 0];
    await this.#copyAll(signal);
    await this.#removeAll(signal);
    while (await this.#deps.to.protect(PROTECTED_AT_ONCE)) signal.throwIfAborted();
    return this.progress;
  }

  async #copyAll(signal: AbortSignal): Promise<void> {
    const { from } = this.#deps;
    await this.#pages(signal, (after) => from.listNarinfos(after, PAGE_ROWS), {
      keyOf: ({ storePathHash }) => storePathHash,
      changes: (row) => this.#narinfo(row),
      touch: ({ storePathHash, usedAtMs: atMs }) => ({
        ...{ kind: "touch-narinfo", storePathHash, atMs },
      }),
    });
    await this.#pages(signal, (after) => from.listLooseNars(after, PAGE_ROWS), {
      keyOf: ({ narName }) => narName,
      changes: (row) => this.#looseNar(row),
      touch: ({ narName, usedAtMs: atMs }) => ({ kind: "touch-nar", narName, atMs }),
    });
    await this.#formerNames(signal);
    await this.#pages(signal, (after) => from.listSignedPaths(after, PAGE_ROWS), {
      keyOf: ({ storePathHash }) => storePathHash,
      changes: (row) => this.#signedPath(row),
    });
    await this.#pages(signal, (after) => from.listDocuments(after, PAGE_ROWS), {
      keyOf: ({ path }) => path,
      changes: (row) => this.#document(row),
      touch: ({ path, usedAtMs: atMs }) => ({ kind: "touch-document", path, atMs }),
    });
    await this.#pins();
    await this.#history();
  }

  /** Narinfos first: then nothing names their NARs. */
  async #removeAll(signal: AbortSignal): Promise<void> {
    const { from, to } = this.#deps;
    await this.#pages(signal, (after) => to.listNarinfos(after, PAGE_ROWS), {
      keyOf: ({ storePathHash }) => storePathHash,
      gone: async ({ storePathHash }) =>
        await from.findNarinfo(storePathHash) === undefined
          ? [{ kind: "remove-narinfo", storePathHash }]
          : [],
    });
    await this.#pages(signal, (after) => to.listLooseNars(after, PAGE_ROWS), {
      keyOf: ({ narName }) => narName,
      gone: async ({ narName }) => {
        if (await from.findNar(narName) !== undefined) return [];
        return this.#removal(await to.findNar(narName));
      },
    });
    await this.#pages(signal, (after) => to.listSignedPaths(after, PAGE_ROWS), {
      keyOf: ({ storePathHash }) => storePathHash,
      gone: async ({ storePathHash }) =>
        await from.findSigned(storePathHash) === undefined
          ? [{ kind: "forget-signed", storePathHash }]
          : [],
    });
    await this.#pages(signal, (after) => to.listDocuments(after, PAGE_ROWS), {
      keyOf: ({ path }) => path,
      gone: async ({ path }) =>
        await from.findDocument(path) === undefined ? [{ kind: "remove-document", path }] : [],
    });
  }

  /** `changes` counts as a copy of the row, `gone` as its removal. */
  async #pages<Row>(
    signal: AbortSignal,
    list: (after: string) => Promise<readonly Row[]>,
    { keyOf, changes, gone, touch }: {
      readonly keyOf: (row: Row) => string;
      readonly changes?: (row: Row) => Promise<readonly Change[]>;
      readonly gone?: (row: Row) => Promise<readonly Change[]>;
      readonly touch?: (row: Row) => Change;
    },
  ): Promise<void> {
    const { to, confirm } = this.#deps;
    for (let after = "";;) {
      signal.throwIfAborted();
      const page = await list(after);
      const last = page.at(-1);
      if (last === undefined) return;
      await confirm();
      await Promise.all(page.map((row) =>
        this.#limit(async () => {
          if (changes !== undefined) await this.#put(await changes(row));
          if (gone !== undefined) await this.#remove(await gone(row));
        })
      ));
      if (touch !== undefined) await to.apply(page.map(touch));
      after = keyOf(last);
    }
  }

  async #remove(changes: readonly Change[]): Promise<void> {
    if (changes.length === 0) return;
    await this.#deps.to.apply(changes);
    this.#removed++;
  }

  async #put(changes: readonly Change[]): Promise<void> {
    this.#compared++;
    if (changes.length === 0) return;
    await this.#deps.to.apply(changes);
    this.#copied++;
  }

  async #narinfo({ storePathHash, usedAtMs: atMs }: ListedNarinfo): Promise<readonly Change[]> {
    const { from, to } = this.#deps;
    const row = await from.findNarinfo(storePathHash);
    const nar = row && await from.findNar(row.narName);
    // Absent: it was removed meanwhile.
    if (row === undefined || nar === undefined) return [];
    const there = await to.findNar(nar.name);
    const other = await this.#otherNar(nar, there);
    const kept = this.#kept(nar, other.length > 0 ? undefined : there, atMs);
    if (other.length === 0 && isDeepStrictEqual(await to.findNarinfo(storePathHash), row)) {
      return [...await this.#sources(nar), ...kept];
    }
    const references = await from.referencesOf(storePathHash);
    const sources = await from.sourcesOf(nar.name);
    return [
      ...other,
      { kind: "put-narinfo", row, references, nar: factsOf(nar), sources, atMs },
      ...kept,
    ];
  }

  async #looseNar(listed: ListedLooseNar): Promise<readonly Change[]> {
    const { from, to } = this.#deps;
    const { narName, usedAtMs: atMs, stagedUntilMs: untilMs } = listed;
    const nar = await from.findNar(narName);
    if (nar === undefined) return [];
    const there = await to.findNar(narName);
    const other = await this.#otherNar(nar, there);
    const isPresent = there !== undefined && other.length === 0;
    const kept = this.#kept(nar, isPresent ? there : undefined, atMs);
    if (isPresent) return [...await this.#sources(nar), ...kept];
    const sources = await from.sourcesOf(narName);
    return [
      ...other,
      { kind: "stage-nar", nar: factsOf(nar), untilMs },
      ...sources.map((source): Change => ({ kind: "put-source", narName, source })),
      ...kept,
    ];
  }

  /** Sources that the new database lacks, or has with another location. */
  async #sources({ name: narName }: NarRecord): Promise<readonly Change[]> {
    const { from, to } = this.#deps;
    const [sources, there] = await Promise.all([from.sourcesOf(narName), to.sourcesOf(narName)]);
    const known = new Map(there.map(({ upstream, location }) => [upstream, location]));
    return sources.filter(({ upstream, location }) => known.get(upstream) !== location)
      .map((source) => ({ kind: "put-source", narName, source }));
  }

  /**
   * Changes that remove the NAR of the same name with other facts. The old database has forgotten
   * it, and has got another one since. Empty where the new one has none, or the same.
   */
  async #otherNar(nar: NarRecord, there: NarRecord | undefined): Promise<readonly Change[]> {
    if (there === undefined || isSameClaim(there, nar)) return [];
    const paths = await this.#deps.to.narinfosOf(nar.name);
    return [
      ...paths.map((storePathHash): Change => ({ kind: "remove-narinfo", storePathHash })),
      ...this.#removal(there),
    ];
  }

  /** Changes that remove a NAR that no narinfo names. */
  #removal(there: NarRecord | undefined): readonly Change[] {
    if (there === undefined) return [];
    return [...this.#givenUp(there.kept), { kind: "remove-nar", narName: there.name }];
  }

  /** One that the old database has no more went with its NAR. */
  async #formerNames(signal: AbortSignal): Promise<void> {
    const { from, to, confirm } = this.#deps;
    for (let after = "";;) {
      signal.throwIfAborted();
      const page = await from.listFormerNames(after, PAGE_ROWS);
      const last = page.at(-1);
      if (last === undefined) return;
      await confirm();
      for (const { stem, narName } of page) {
        this.#compared++;
        if (await to.narOfFormerName(stem) === narName) continue;
        await to.putFormerNames(narName, [stem]);
        this.#copied++;
      }
      after = last.stem;
    }
  }

  async #signedPath(row: ListedSignedPath): Promise<readonly Change[]> {
    const there = await this.#deps.to.findSigned(row.storePathHash);
    if (there?.digest === row.digest && there.isUploaded === row.isUploaded) return [];
    const { storePathHash } = row;
    // First, since one with the same facts stays as it is.
    return [
      { kind: "forget-signed", storePathHash },
      { kind: "put-signed", ...row, countMax: Infinity },
    ];
  }

  async #document({ path, usedAtMs: atMs }: ListedDocument): Promise<readonly Change[]> {
    const { from, to } = this.#deps;
    const row = await from.findDocument(path);
    if (row === undefined) return [];
    const there = await to.findDocument(path);
    if (there !== undefined && isDeepStrictEqual(documentOf(row), documentOf(there))) return [];
    const { id, checkedAtMs } = row;
    const document = documentOf(row);
    const pieces: Uint8Array[] = [];
    for (;;) {
      const piece = await from.documentPiece(id, pieces.length);
      if (piece === undefined) break;
      pieces.push(piece);
    }
    const readBytes = pieces.reduce((sum, { length }) => sum + length, 0);
    // Another one has replaced it meanwhile.
    if (readBytes !== row.bodyBytes) return [];
    return [
      { kind: "put-document", document, pieces, totalBytesMax: Infinity, atMs },
      { kind: "check-document", path, atMs: checkedAtMs },
    ];
  }

  /** Copies the pins in the order of pinning. */
  async #pins(): Promise<void> {
    const { from, to } = this.#deps;
    const pins = await from.pins();
    const wanted = new Map(pins.map((pin) => [pin.storePathHash, pin]));
    const there = await to.pins();
    // One that rolls there can be put to stay, but not the other way round.
    const isWanted = ({ storePathHash, pinnedAtMs, rolls }: PinRoot) => {
      const pin = wanted.get(storePathHash);
      return pin?.pinnedAtMs === pinnedAtMs && (rolls === true || pin.rolls === undefined);
    };
    await this.#deps.confirm();
    for (const { storePathHash } of there.filter((pin) => !isWanted(pin))) {
      const removed: readonly Change[] = [{ kind: "remove-pin", storePathHash }];
      // One that was pinned again counts as copied.
      if (wanted.has(storePathHash)) await to.apply(removed);
      else await this.#remove(removed);
    }
    const known = new Map(there.filter(isWanted).map((pin) => [pin.storePathHash, pin]));
    for (const pin of pins) {
      const { storePathHash, keepComplete = false, look } = pin;
      const same = known.get(pin.storePathHash);
      const isSame = same !== undefined && same.rolls === pin.rolls;
      await this.#put(isSame ? [] : [{ kind: "put-pin", pin }]);
      await to.notePin(storePathHash, { keepComplete, ...look === undefined ? {} : { look } });
    }
    await this.#namedPins();
  }

  /**
   * Copies the names of the pins, all of them if one differs. Each root enters its name before a
   * name gives one up: so no root loses its place among the pins.
   */
  async #namedPins(): Promise<void> {
    const { from, to } = this.#deps;
    const [wanted, there] = await Promise.all([from.namedPins(), to.namedPins()]);
    if (isDeepStrictEqual(wanted, there)) return;
    const names = new Set([...wanted, ...there].map(({ name }) => name));
    await this.#put([
      ...wanted.map((pin) => roll(pin, Number.MAX_SAFE_INTEGER)),
      ...[...names].flatMap((name): readonly Change[] => {
        const pins = wanted.filter((pin) => pin.name === name);
        const last = pins.at(-1);
        if (last === undefined) return [{ kind: "unpin-name", name }];
        return [roll(last, pins.length), roll(last, last.keep)];
      }),
    ]);
  }

  /** Copies the history once: the new database adds later figures. */
  async #history(): Promise<void> {
    const { from, to } = this.#deps;
    if ((await to.history()).length === 0) await to.recordHistory(await from.history(), []);
    const pulls = await Promise.all(
      (await from.pulls(PULLS_MAX)).map(({ id }) => from.findPull(id)),
    );
    await to.recordPulls(pulls.filter((pull) => pull !== undefined).reverse());
  }

  /** The row alone: no file is touched. */
  #givenUp(file: KeptFile | undefined): readonly Change[] {
    if (file === undefined) return [];
    const { at } = file;
    return [{ kind: "nar-marked", at, owner: this.#owner }, { kind: "nar-gone", at }];
  }

  /** Changes that make the kept object that of the old database. No file is touched. */
  #kept(from: NarRecord, to: NarRecord | undefined, atMs: number): readonly Change[] {
    const [file, former] = [from.kept, to?.kept];
    const owner = this.#owner;
    if (file?.at === former?.at) return sealChange(file, former);
    const gone = this.#givenUp(former);
    if (file === undefined) return gone;
    return [
      ...gone,
      { kind: "nar-publishing", at: file.at, owner },
      { kind: "nar-kept", file, owner, atMs },
    ];
  }
}

function roll(pin: NamedPin, keep: number): Change {
  return { kind: "roll-pin", ...pin, keep };
}

/** A document without the fields that differ between two copies. */
function documentOf({ id: _, checkedAtMs: __, ...document }: DocumentRow): DocumentFacts {
  return document;
}

function sealChange(file: KeptFile | undefined, former: KeptFile | undefined): readonly Change[] {
  if (file?.seal === undefined || file.seal === former?.seal) return [];
  return [{ kind: "nar-sealed", at: file.at, seal: file.seal }];
}

/** The row of the NAR, without the kept file. */
function factsOf({ kept: _, ...facts }: NarRecord): NarRow {
  return facts;
}
