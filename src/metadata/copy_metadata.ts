import { isDeepStrictEqual } from "node:util";
import pLimit from "p-limit";
import { type MemberId, newMemberId } from "../base/member_id.ts";
import type { Change, KeptFile, MetadataStore, NarRecord, NarRow } from "./metadata_store.ts";
import type { ListedDocument, ListedLooseNar, ListedNarinfo, RowLister } from "./row_lister.ts";

/** Rows of one page: each takes some queries. */
const PAGE_ROWS = 256;

const ROWS_AT_ONCE = 16;

/** Paths of one transaction that protects closures. */
const PROTECTED_AT_ONCE = 500;

export interface CopyDeps {
  readonly from: MetadataStore & RowLister;
  readonly to: MetadataStore;
}

export interface CopyProgress {
  /** Rows that were compared in this pass. */
  readonly looked: number;
  /** Rows that differed, and are copied now. */
  readonly copied: number;
}

/**
 * Copies the metadata of one database into another, row by row. Equal rows are compared and left.
 * So a copy that ended early goes on where it was, and a server may use the old database meanwhile.
 * Nothing is removed from the new one but files that the old one gave up.
 */
export class MetadataCopy {
  readonly #deps: CopyDeps;
  readonly #owner: MemberId = newMemberId("migrate", Deno.pid);
  readonly #limit = pLimit(ROWS_AT_ONCE);
  #looked = 0;
  #copied = 0;

  constructor(deps: CopyDeps) {
    this.#deps = deps;
  }

  get progress(): CopyProgress {
    return { looked: this.#looked, copied: this.#copied };
  }

  /** Compares everything once, and copies what differs. Throws the signal's reason. */
  async pass(signal: AbortSignal): Promise<CopyProgress> {
    const { from, to } = this.#deps;
    [this.#looked, this.#copied] = [0, 0];
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
    await this.#pages(signal, (after) => from.listDocuments(after, PAGE_ROWS), {
      keyOf: ({ path }) => path,
      changes: (row) => this.#document(row),
      touch: ({ path, usedAtMs: atMs }) => ({ kind: "touch-document", path, atMs }),
    });
    await this.#pins();
    await this.#history();
    while (await to.protect(PROTECTED_AT_ONCE)) signal.throwIfAborted();
    return this.progress;
  }

  async #pages<Row>(
    signal: AbortSignal,
    list: (after: string) => Promise<readonly Row[]>,
    { keyOf, changes, touch }: {
      readonly keyOf: (row: Row) => string;
      readonly changes: (row: Row) => Promise<readonly Change[]>;
      readonly touch: (row: Row) => Change;
    },
  ): Promise<void> {
    for (let after = "";;) {
      signal.throwIfAborted();
      const page = await list(after);
      const last = page.at(-1);
      if (last === undefined) return;
      await Promise.all(page.map((row) => this.#limit(async () => this.#put(await changes(row)))));
      await this.#deps.to.apply(page.map(touch));
      after = keyOf(last);
    }
  }

  async #put(changes: readonly Change[]): Promise<void> {
    this.#looked++;
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
    const kept = this.#kept(nar, await to.findNar(nar.name), atMs);
    if (isDeepStrictEqual(await to.findNarinfo(storePathHash), row)) return kept;
    const references = await from.referencesOf(storePathHash);
    const sources = await from.sourcesOf(nar.name);
    return [
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
    const kept = this.#kept(nar, there, atMs);
    if (there !== undefined) return kept;
    const sources = await from.sourcesOf(narName);
    return [
      { kind: "stage-nar", nar: factsOf(nar), untilMs },
      ...sources.map((source): Change => ({ kind: "put-source", narName, source })),
      ...kept,
    ];
  }

  async #document({ path, usedAtMs: atMs }: ListedDocument): Promise<readonly Change[]> {
    const { from, to } = this.#deps;
    const row = await from.findDocument(path);
    if (row === undefined || row.tag === (await to.findDocument(path))?.tag) return [];
    const { id, checkedAtMs, ...document } = row;
    const pieces: Uint8Array[] = [];
    for (;;) {
      const piece = await from.documentPiece(id, pieces.length);
      if (piece === undefined) break;
      pieces.push(piece);
    }
    const size = pieces.reduce((sum, { length }) => sum + length, 0);
    // Another one has replaced it meanwhile.
    if (size !== row.size) return [];
    return [
      { kind: "put-document", document, pieces, totalBytesMax: Infinity, atMs },
      { kind: "check-document", path, atMs: checkedAtMs },
    ];
  }

  /** Copies the pins in the order of pinning. */
  async #pins(): Promise<void> {
    const { from, to } = this.#deps;
    const there = new Set((await to.pins()).map(({ storePathHash }) => storePathHash));
    for (const pin of await from.pins()) {
      await this.#put(there.has(pin.storePathHash) ? [] : [{ kind: "put-pin", pin }]);
    }
  }

  /** Copies the history once: the new database adds later figures. */
  async #history(): Promise<void> {
    const { from, to } = this.#deps;
    if ((await to.history()).length === 0) await to.recordHistory(await from.history(), []);
  }

  /** Changes that make the kept object that of the old database. No file is touched. */
  #kept(from: NarRecord, to: NarRecord | undefined, atMs: number): readonly Change[] {
    const [file, former] = [from.kept, to?.kept];
    const owner = this.#owner;
    if (file?.at === former?.at) return sealChange(file, former);
    const gone: readonly Change[] = former === undefined ? [] : [
      { kind: "nar-marked", at: former.at, owner },
      { kind: "nar-gone", at: former.at },
    ];
    if (file === undefined) return gone;
    return [
      ...gone,
      { kind: "nar-publishing", at: file.at, owner },
      { kind: "nar-kept", file, owner, atMs },
    ];
  }
}

function sealChange(file: KeptFile | undefined, former: KeptFile | undefined): readonly Change[] {
  if (file?.seal === undefined || file.seal === former?.seal) return [];
  return [{ kind: "nar-sealed", at: file.at, seal: file.seal }];
}

/** The row of the NAR, without the kept file. */
function factsOf({ kept: _, ...facts }: NarRecord): NarRow {
  return facts;
}
