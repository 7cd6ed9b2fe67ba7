import { unlessAborted } from "../../base/unless_aborted.ts";
import { messageOf } from "../../base/failure.ts";
import { removeForeign } from "./foreign_file.ts";
import type {
  ChangeWriter,
  FormerNameKeeper,
  NarFinder,
  NarinfoFinder,
  NarRecord,
} from "../../metadata/metadata_store.ts";
import { readFormerNames } from "../../nix/former_names.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { formatNarinfo } from "../../nix/narinfo_format.ts";
import { compressionOf, type NarName, type NarStem, stemOf } from "../../nix/nar_name.ts";
import type { TrustedKeys } from "../../nix/trusted_keys.ts";
import { formerFile } from "../forms/recompressed.ts";
import { nameInUrl, narRowOf, narUrlOf, ownNarRowOf } from "../nar/nar_naming.ts";
import { wrongKeyHint } from "../../upstream/failure_hints.ts";
import { keptFile, type NarinfoUploads, type StoredEntries } from "../upload/narinfo_uploads.ts";
import type { Requester } from "../nar/nar_answer.ts";
import { UploadRefused } from "../upload/upload_body.ts";
import { Mismatch } from "../verify/check_nar.ts";
import { CannotLink, type ImportedNar, importNar, type ImportNarDeps } from "./import_nar.ts";
import type { BrokenEntry, ImportSource, SourceEntry } from "./import_source.ts";

export interface ImporterDeps {
  readonly metadata:
    & NarinfoFinder
    & Pick<NarFinder, "findNar">
    & Pick<FormerNameKeeper, "putFormerNames">
    & ChangeWriter;
  readonly kept: StoredEntries["kept"];
  readonly nars: ImportNarDeps;
  readonly narinfos: Pick<NarinfoUploads, "accept">;
  readonly trust: {
    readonly keys: TrustedKeys;
    /** True: an entry that none of the keys has signed stays where it is. */
    readonly isRequired: boolean;
  };
  /** How many entries come over side by side. */
  readonly entriesAtOnce: number;
}

/** The counts of an import so far. */
export interface ImportProgress {
  readonly entriesAll: number | undefined;
  readonly entriesDone: number;
  readonly stored: number;
  /** Number of entries that larder had already. */
  readonly known: number;
  /** Number of entries without room below the size limit. */
  readonly withoutRoom: number;
  readonly storedBytes: number;
  /** Number of entries with former names that no trusted key has signed. */
  readonly withoutNames: number;
}

export interface ImportWatcher {
  readonly progress: (progress: ImportProgress) => void;
  readonly broken: (entry: BrokenEntry) => void;
}

const GIVE_KEY = "give the key with --cache-upstream-public-key";

/** Brings the entries of another cache in, each with a verified NAR. */
export class Importer {
  readonly #deps: ImporterDeps;
  readonly #watcher: ImportWatcher;
  readonly #requester: Requester;
  readonly #signal: AbortSignal;
  #progress: ImportProgress;

  constructor(deps: ImporterDeps, watcher: ImportWatcher, signal: AbortSignal) {
    this.#deps = deps;
    this.#watcher = watcher;
    this.#signal = signal;
    this.#requester = { requestId: "import", client: { signal } };
    const none = {
      entriesDone: 0,
      stored: 0,
      known: 0,
      withoutRoom: 0,
      storedBytes: 0,
      withoutNames: 0,
    };
    this.#progress = { entriesAll: undefined, ...none };
  }

  /** Throws where nothing further can come over. An abort ends it early. */
  async run(source: ImportSource): Promise<ImportProgress> {
    this.#count({ entriesAll: source.entryCount });
    const pins = source.pins().map((pin) => ({ kind: "put-pin", pin }) as const);
    if (pins.length > 0) await this.#deps.metadata.apply(pins, { mustWait: true });
    const entries = source.entries(this.#signal)[Symbol.asyncIterator]();
    const workers = Array.from({ length: this.#deps.entriesAtOnce }, async () => {
      while (!this.#signal.aborted) {
        const next = await this.#nextOf(entries);
        if (next === undefined) break;
        await this.#take(next);
      }
    });
    try {
      await Promise.all(workers);
    } finally {
      // After an abort it may still wait for the other cache.
      const returned = entries.return?.().catch(() => undefined);
      if (!this.#signal.aborted) await returned;
      // The first failure ends the others too.
      await Promise.allSettled(workers);
    }
    return this.#progress;
  }

  /** `undefined` at the end, and after an abort. */
  async #nextOf(
    entries: AsyncIterator<SourceEntry | BrokenEntry>,
  ): Promise<SourceEntry | BrokenEntry | undefined> {
    try {
      const next = await unlessAborted(entries.next(), this.#signal);
      return next.done ? undefined : next.value;
    } catch (error) {
      if (this.#signal.aborted) return undefined;
      throw error;
    }
  }

  async #take(entry: SourceEntry | BrokenEntry): Promise<void> {
    try {
      if ("problem" in entry) this.#watcher.broken(entry);
      else await this.#import(entry);
    } catch (error) {
      if (this.#signal.aborted) return;
      if (error instanceof CannotLink) throw error;
      const isNoRoom = error instanceof UploadRefused && error.fault !== "invalid";
      const name = "narinfo" in entry ? entry.narinfo.storePath : entry.name;
      if (isNoRoom) this.#count({ withoutRoom: this.#progress.withoutRoom + 1 });
      else this.#watcher.broken({ name, problem: problemOf(error) });
    }
    this.#count({ entriesDone: this.#progress.entriesDone + 1 });
  }

  async #import(entry: SourceEntry): Promise<void> {
    const { keys, isRequired } = this.#deps.trust;
    const { narinfo, usedAtMs } = entry;
    const trusted = keys.signerOf(narinfo) !== undefined;
    if (isRequired && !trusted) {
      const wrongKey = keys.nameIn(narinfo);
      const hint = wrongKey === undefined ? GIVE_KEY : wrongKeyHint(wrongKey);
      throw new UploadRefused("invalid", `no trusted key has signed it; ${hint}`);
    }
    const here = await this.#keptNarOf(narinfo);
    const imported: ImportedNar = here ?? await importNar(this.#deps.nars, entry, this.#signal);
    const { storePathHash } = narinfo;
    const outcome = await this.#deps.narinfos.accept({
      ...{ storePathHash, usedAtMs, trusted },
      text: await this.#textOf(narinfo, imported.name),
      requester: this.#requester,
    });
    if (outcome.kind === "refused") throw new UploadRefused("invalid", outcome.line);
    if (outcome.kind === "known") {
      const touch = { kind: "touch-narinfo", storePathHash, atMs: usedAtMs } as const;
      await this.#deps.metadata.apply([touch], { mustWait: true });
    }
    await this.#keepNames(entry, imported.name);
    if (this.#deps.nars.handling === "move" && entry.nar.kind === "file") {
      // A missing one: another store path has the same NAR.
      removeForeign(entry.nar, imported.source);
    }
    const { stored, storedBytes, known } = this.#progress;
    if (here !== undefined && outcome.kind === "known") return this.#count({ known: known + 1 });
    const addedBytes = here === undefined ? imported.fileSize : 0;
    this.#count({ stored: stored + 1, storedBytes: storedBytes + addedBytes });
  }

  /** Clients of the other cache remember its names. A name that nothing proves may be a lie. */
  async #keepNames({ narinfo, formerNames }: SourceEntry, name: NarName): Promise<void> {
    const { metadata, trust } = this.#deps;
    const { signed, otherCount } = readFormerNames(formerNames ?? "", narinfo, trust.keys);
    if (otherCount > 0) this.#count({ withoutNames: this.#progress.withoutNames + 1 });
    const named = nameInUrl(narinfo.url);
    const byNarHash = named !== undefined && stemOf(named) === `${narinfo.narHash}`;
    const stems: readonly NarStem[] = byNarHash ? [...signed, stemOf(named)] : signed;
    const former = new Set(stems.filter((stem) => stem !== stemOf(name)));
    if (former.size > 0) await metadata.putFormerNames(name, [...former]);
  }

  /** The same NAR, where it is stored and undamaged. */
  async #keptNarOf(narinfo: Narinfo) {
    const { metadata } = this.#deps;
    const row = await metadata.findNarinfo(narinfo.storePathHash);
    const claimed = narRowOf(narinfo);
    const names = [row?.narName, claimed.name, ownNarRowOf(claimed).name];
    for (const name of new Set(names)) {
      const nar = name && await metadata.findNar(name, { fresh: true });
      if (!nar || !isSameNar(nar, narinfo)) continue;
      const kept = await keptFile(this.#deps, nar, this.#requester);
      if (kept !== undefined) return { name: nar.name, fileSize: kept.fileSize };
    }
    return undefined;
  }

  /** The narinfo with larder's URL, and nothing about the file that is not so. */
  async #textOf(narinfo: Narinfo, name: NarName): Promise<string> {
    const nar = await this.#deps.metadata.findNar(name, { fresh: true });
    const file = nar?.kept && formerFile(nar, nar.kept);
    const hasHash = narinfo.fileHash === file?.fileHash;
    const facts = { hasHash, fileSize: file?.fileSize };
    const compression = compressionOf(name);
    return formatNarinfo({ ...narinfo, compression }, { url: narUrlOf(name), file: facts });
  }

  #count(changed: Partial<ImportProgress>): void {
    this.#progress = { ...this.#progress, ...changed };
    this.#watcher.progress(this.#progress);
  }
}

function isSameNar(nar: NarRecord, narinfo: Narinfo): boolean {
  return nar.kept !== undefined && nar.narHash === narinfo.narHash &&
    nar.narSize === narinfo.narSize &&
    [nar.compression, nar.kept.form].includes(narinfo.compression);
}

function problemOf(error: unknown): string {
  if (error instanceof Mismatch) return `its NAR is broken: ${error.message}`;
  return error instanceof UploadRefused ? error.message : messageOf(error);
}
