import pLimit from "p-limit";
import { Failure } from "../base/failure.ts";
import { SingleFlight } from "../base/single_flight.ts";
import type {
  DocumentKeeper,
  FormerNameFinder,
  NarFinder,
  NarinfoRow,
  NarRecord,
  NarRow,
  NarSource,
} from "../metadata/metadata_store.ts";
import type { Compression } from "../nix/compression.ts";
import type { FileHash, NarHash } from "../nix/hash.ts";
import {
  compressionOf,
  hashOf,
  type NarName,
  type NarReference,
  plainNarName,
  renamedNar,
  stemOf,
} from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import type { ActiveReads } from "../space/active_reads.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import type { Loops } from "../upstream/loops.ts";
import type { UpstreamPool } from "../upstream/upstream_pool.ts";
import type { Downloads, JoinedDownload } from "./download/downloads.ts";
import {
  type Download,
  type DownloadReader,
  KeptElsewhere,
  NotKept,
} from "./download/run_download.ts";
import type { NarPart } from "./fetch/nar_fetcher.ts";
import { formFacts, type NarForms, unknownFacts } from "./forms/nar_forms.ts";
import { formerNames, mayRecompress, RECOMPRESSED } from "./forms/recompressed.ts";
import { type KeptNars, openStored } from "./kept/kept_nars.ts";
import {
  type CacheResult,
  type Client,
  type NarAnswer,
  type NarFacts,
  type Requester,
  WHOLE_BYTES_MAX,
  WHOLE_WAIT_MS,
} from "./nar/nar_answer.ts";
import { fileSizeLimit, tagOf } from "./nar/nar_naming.ts";
import {
  openPassThrough,
  type PassThroughDeps,
  restPassedThrough,
} from "./pass_through/pass_through.ts";
import type { NarRequestWatcher } from "./prefetch/prefetch_ports.ts";
import type { MemberDownloads } from "./serve_member_download.ts";
import { statNar, type StatNarDeps } from "./sources/nar_attempts.ts";
import type { Touches } from "./touches.ts";

/** Attempts to join another member's download, which may end between the query and the join. */
const TRIES_MAX = 3;

export interface NarServerDeps {
  readonly kept: Pick<KeptNars, "open" | "find">;
  readonly downloads: Downloads;
  readonly forms: Pick<NarForms, "answer" | "unknownAnswer" | "broke">;
  readonly passThrough: PassThroughDeps;
  readonly formerNames: FormerNameFinder;
  /** Default: there are no other members. */
  readonly memberDownloads?: Pick<MemberDownloads, "open"> | undefined;
  /** Notes requests and reads. */
  readonly watchers: {
    readonly touches: Pick<Touches, "nar">;
    readonly prefetch: NarRequestWatcher;
    readonly reads: ActiveReads;
  };
  /** The narinfo of a store path, stored or from an upstream. */
  readonly narinfoOf: (
    storePathHash: StorePathHash,
    requestId: string,
  ) => Promise<NarinfoRow | undefined>;
  /** True for an upstream of the settings. */
  readonly isUpstream: (url: string) => boolean;
  /** Files that no narinfo names. */
  readonly unnamedNars: Pick<UnnamedNarServer, "open" | "stat" | "isKnownAbsent">;
  /** Requests sizes for HEAD, without a download, of the member that has one or of upstreams. */
  readonly sizes: StatNarDeps;
}

/** A NAR file to serve. */
interface WantedNar {
  readonly name: NarName;
  /** Its NAR's facts, where the client wants the NAR itself, decompressed. */
  readonly unpacked?: NarRecord | undefined;
}

/** The row of a wanted file, and the form that the client wants. */
interface LocatedNar {
  readonly nar: NarRecord;
  readonly to: Compression;
}

/** Answers NAR requests: from the store, from a running download, or from a new one. */
export class NarServer {
  readonly #deps: NarServerDeps;
  readonly #metadata: NarFinder;
  readonly #tracer: Tracer;

  constructor(deps: NarServerDeps) {
    this.#deps = deps;
    this.#metadata = deps.sizes.candidates.metadata;
    this.#tracer = deps.passThrough.tracer;
  }

  /**
   * The file that a reference leads to. Where larder does not know the file by its name, that is the
   * one of its store path, if it has the same NAR.
   */
  async resolve({ name, storePathHash }: NarReference, requestId: string): Promise<WantedNar> {
    if (storePathHash === undefined || await this.#readable(name)) return { name };
    const row = await this.#deps.narinfoOf(storePathHash, requestId);
    const nar = row && await this.#readable(row.narName);
    if (nar?.narHash !== hashOf(name)) return { name };
    if (nar.compression === compressionOf(name)) return { name: nar.name };
    return compressionOf(name) === "none" ? { name: nar.name, unpacked: nar } : { name };
  }

  /** The row; a database that cannot be read hides what upstreams have. */
  async #readable(name: NarName): Promise<NarRecord | undefined> {
    return await this.#metadata.findNar(name).catch(() => undefined);
  }

  /** `undefined` for an absent file. Throws when a download fails before its first byte. */
  async open(
    wanted: WantedNar,
    requestId: string,
    client: Client,
  ): Promise<NarAnswer | undefined> {
    const requester = { requestId, client };
    return await this.#byRowOrName(wanted, requestId, {
      byRow: (located) => this.#openLocated(located, requester),
      byName: () => this.#openUnnamed(wanted.name, requester),
    });
  }

  /**
   * Without a row its name alone leads to a file, or to a narinfo with its row. So does that of a row
   * that cannot be read now; if it leads to no file, this throws the error of the database.
   */
  async #byRowOrName<Found>(
    wanted: WantedNar,
    requestId: string,
    { byRow, byName }: {
      byRow(located: LocatedNar): Promise<Found | undefined>;
      byName(): Promise<Found | DescribedNar | undefined>;
    },
  ): Promise<Found | undefined> {
    let located: LocatedNar | undefined;
    try {
      located = await this.#locate(wanted);
    } catch (error) {
      const found = await byName();
      if (found === undefined || found instanceof DescribedNar) throw error;
      return found;
    }
    const found = await (located === undefined ? byName() : this.#orImported(located, byRow));
    if (!(found instanceof DescribedNar)) return found;
    await this.#deps.narinfoOf(found.storePathHash, requestId);
    located = await this.#locate(wanted);
    return located && await byRow(located);
  }

  /** Where the file of the row cannot come, one that an import brought under that name can. */
  async #orImported<Found>(
    located: LocatedNar,
    byRow: (located: LocatedNar) => Promise<Found | undefined>,
  ): Promise<Found | undefined> {
    const { nar, to } = located;
    return await orElse(() => byRow(located), async () => {
      const imported = await this.#importedAs(nar.name).catch(() => undefined);
      if (imported === undefined || imported.narHash !== nar.narHash) return undefined;
      return imported.name === nar.name ? undefined : await byRow({ nar: imported, to });
    });
  }

  async #openLocated(
    { nar, to }: LocatedNar,
    requester: Requester,
  ): Promise<NarAnswer | undefined> {
    const { watchers, forms } = this.#deps;
    watchers.touches.nar(nar.name);
    const isFirstOfPrefetch = watchers.prefetch.requested(nar.name);
    const stored = await openStored(this.#stored, nar, requester, to);
    if (stored !== undefined) return isFirstOfPrefetch ? { ...stored, isFirstOfPrefetch } : stored;
    const file = await this.#orLoss(nar, requester, this.#fetch(nar, requester));
    if (file === undefined) return undefined;
    const release = (isWhole: boolean) => {
      file.release?.(isWhole);
      if (!isWhole) void forms.broke(nar);
    };
    return forms.answer({ ...file, release }, nar, nar, to);
  }

  /**
   * `undefined` for a file without a row. The name of a recompressed file leads to the row of the
   * file that it was made of, whether or not larder still has it. Where an upstream recompressed it,
   * the former name leads to the row of that one: they have the hash in their names in common. A
   * name of another larder leads to the file that came from there, where no row has it.
   */
  async #locate({ name, unpacked }: WantedNar): Promise<LocatedNar | undefined> {
    const to = unpacked ? "none" : compressionOf(name);
    // Memory knows the row of a NAR that is about to come: the database may be away meanwhile.
    const nar = await this.#metadata.findNar(name) ?? await this.#relatedTo(name) ??
      await this.#importedAs(name);
    return nar && { nar, to };
  }

  async #relatedTo(name: NarName): Promise<NarRecord | undefined> {
    const others = mayRecompress(name) ? [renamedNar(name, RECOMPRESSED)] : formerNames(name);
    const found = await Promise.all(others.map((one) => this.#metadata.findNar(one)));
    const isOfNar = ({ fileHash }: NarRecord) => fileHash === undefined || !mayRecompress(name);
    return found.find((one) => one !== undefined && isOfNar(one));
  }

  async #importedAs(name: NarName): Promise<NarRecord | undefined> {
    const narName = await this.#deps.formerNames.narOfFormerName(stemOf(name));
    const nar = narName && await this.#metadata.findNar(narName);
    return nar?.kept && nar;
  }

  /**
   * The store path of a file whose bytes do not have the hash in its name; `undefined` for others,
   * and where no narinfo names it.
   */
  async pathOf({ name }: WantedNar, { tag }: NarFacts): Promise<StorePathHash | undefined> {
    if (tag === hashOf(name)) return undefined;
    const located = await this.#locate({ name });
    return located && (await this.#metadata.narinfosOf(located.nar.name))[0];
  }

  /** A client may remember the name of a recompressed file whose row was lost. */
  async #openUnnamed(
    name: NarName,
    requester: Requester,
  ): Promise<NarAnswer | DescribedNar | undefined> {
    const { unnamedNars, forms } = this.#deps;
    if (compressionOf(name) !== RECOMPRESSED) return await unnamedNars.open(name, requester);
    const found = await this.#findUnnamed(name, requester.requestId);
    if (found === undefined || found instanceof DescribedNar) return found;
    const file = await unnamedNars.open(found.name, requester);
    if (file === undefined || file instanceof DescribedNar || found.name === name) return file;
    return forms.unknownAnswer(file, compressionOf(found.name));
  }

  /**
   * The file at an upstream, by its name alone, or else the one that it was made of. A larder that
   * lost its rows, too, speaks the first without a size, and nothing shows whether it is right.
   */
  async #findUnnamed(
    name: NarName,
    requestId: string,
  ): Promise<FoundUnnamed | DescribedNar | undefined> {
    const stat = async (name: NarName) => {
      const facts = await this.#deps.unnamedNars.stat(name, requestId);
      return facts instanceof DescribedNar ? facts : facts && { name, facts };
    };
    const file = await stat(name);
    if (file instanceof DescribedNar || file?.facts.fileSize !== undefined) return file;
    const former = await Promise.all(formerNames(name).map(stat));
    return former.find((one) => one !== undefined) ?? file;
  }

  get #stored() {
    const { kept, forms, watchers } = this.#deps;
    return { kept, forms, ...watchers };
  }

  /**
   * An unsigned file hash may have given this name to a NAR of other bytes. Then the file that a
   * debuginfo document names is still served. So is the file of a row whose upstreams are no longer
   * in the settings, if another one has it under that name.
   */
  async #fetch(nar: NarRecord, requester: Requester): Promise<NarAnswer | undefined> {
    const unnamed = async () =>
      unlessDescribed(
        await this.#deps.unnamedNars.open(nar.name, requester, await this.#askedBesides(nar)),
      );
    return await orElse(async () => {
      const mayShare = this.#deps.downloads.mayJoin(nar.name);
      const shared = mayShare ? await this.#openShared(nar, requester) : undefined;
      return shared ?? await openPassThrough(this.#deps.passThrough, nar, requester);
    }, unnamed);
  }

  /**
   * The upstreams with a source of the row have failed to send its file. Those that offer the path
   * of a stored narinfo have, too. Without one, nobody has asked the others; nor where the database
   * cannot be read.
   */
  async #askedBesides({ name }: NarRecord): Promise<"all" | "documented"> {
    const { isUpstream } = this.#deps;
    try {
      if ((await this.#metadata.narinfosOf(name)).length === 0) return "all";
      const sources = await this.#metadata.sourcesOf(name);
      return sources.some(({ upstream }) => isUpstream(upstream)) ? "documented" : "all";
    } catch {
      return "all";
    }
  }

  /**
   * Answer from a download of this member or another. `undefined` for a file that cannot be stored
   * here: upstreams may have it.
   */
  async #openShared(nar: NarRecord, requester: Requester): Promise<NarAnswer | undefined> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const answer = await this.#openDownload(nar, requester);
      if (answer !== "elsewhere") return answer;
      const found = await this.#openStoredSince(nar.name, requester) ??
        await this.#deps.memberDownloads?.open(nar, requester);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The file that another member has stored meanwhile. */
  async #openStoredSince(narName: NarName, requester: Requester): Promise<NarAnswer | undefined> {
    const nar = await this.#metadata.findNar(narName, { fresh: true });
    return nar && await openStored(this.#stored, nar, requester);
  }

  /** `undefined` for a file that cannot be stored here. */
  async #openDownload(nar: NarRecord, requester: Requester): Promise<NarAnswer | NotHere> {
    const { downloads } = this.#deps;
    try {
      const joined = downloads.join(nar, requester.requestId);
      const answer = this.#joinedAnswer(nar, joined, requester);
      return await answer.catch((error) => {
        if (!downloads.hasFailedForOthers(joined.download)) throw error;
        return this.#joinedAnswer(nar, downloads.join(nar, requester.requestId), requester);
      });
    } catch (error) {
      return whereElse(error);
    }
  }

  async #joinedAnswer(
    nar: NarRecord,
    { download, joined, isFirstOfPrefetch }: JoinedDownload,
    { requestId, client: { peer } }: Requester,
  ): Promise<NarAnswer | NotHere> {
    const run = this.#tracer.here();
    const passThrough = (part: NarPart) =>
      restPassedThrough(this.#deps.passThrough, nar, { ...part, requestId, peer, run });
    const cacheResult = joined ? "JOINED" : "MISS";
    const open = async () => (
      {
        ...await openDownload(nar, download, { cacheResult, passThrough, peer }),
        isFirstOfPrefetch,
      }
    );
    return await this.#tracer.span(
      { name: joined ? "join download" : "wait for first bytes" },
      () => download.isBackground ? open() : open().catch(whereElse),
    );
  }

  /** True for a name that every upstream lacked of late. */
  isKnownAbsent(narName: NarName): boolean {
    return this.#deps.unnamedNars.isKnownAbsent(narName);
  }

  /** The same facts without a download, for HEAD. */
  async stat(
    wanted: WantedNar,
    requestId: string,
    client: Client,
  ): Promise<NarFacts | undefined> {
    return await this.#byRowOrName(wanted, requestId, {
      byRow: (located) => this.#statLocated(located, { requestId, client }),
      byName: () => this.#statUnnamed(wanted.name, requestId),
    });
  }

  async #statLocated(
    { nar, to }: LocatedNar,
    requester: Requester,
  ): Promise<NarFacts | undefined> {
    const { requestId } = requester;
    const isFirstOfPrefetch = this.#deps.watchers.prefetch.has(nar.name);
    await using answer = await openStored(this.#stored, nar, requester, to);
    if (answer !== undefined) return { ...factsOf(answer), isFirstOfPrefetch };
    const unnamed = async () =>
      unlessDescribed(
        await this.#deps.unnamedNars.stat(nar.name, requestId, await this.#askedBesides(nar)),
      );
    const fetched = orElse(
      async () => await this.#statDownload(nar) ?? await this.#statUpstream(nar, requestId),
      unnamed,
    );
    const facts = await this.#orLoss(nar, requester, fetched);
    return facts && formFacts(facts, nar, nar, to);
  }

  /**
   * What upstreams gave. Where they have nothing, throws the Failure of a store that has the file and
   * does not give it: the log then names the store.
   */
  async #orLoss<Found>(
    nar: NarRecord,
    { requestId, client }: Requester,
    fetched: Promise<Found | undefined>,
  ): Promise<Found | undefined> {
    const lookAtStore = async () => {
      const file = nar.kept && await this.#deps.kept.find(nar, requestId, client);
      await file?.stored[Symbol.asyncDispose]();
    };
    const found = await fetched.catch(async (error) => {
      const isOfUpstreams = error instanceof Failure &&
        (error.kind === "absent" || error.kind === "upstream-down");
      if (isOfUpstreams) await lookAtStore();
      throw error;
    });
    if (found === undefined) await lookAtStore();
    return found;
  }

  async #statUnnamed(
    name: NarName,
    requestId: string,
  ): Promise<NarFacts | DescribedNar | undefined> {
    const found = await this.#findUnnamed(name, requestId);
    if (found === undefined || found instanceof DescribedNar) return found;
    return found.name === name ? found.facts : unknownFacts(found.facts);
  }

  /** `undefined` without a download, or with one that failed before a client could need it. */
  async #statDownload(nar: NarRecord): Promise<NarFacts | undefined> {
    const { downloads } = this.#deps;
    const download = downloads.mayJoin(nar.name) ? downloads.find(nar.name) : undefined;
    if (download === undefined) return undefined;
    try {
      await download.readable(0);
    } catch (error) {
      if (downloads.hasFailedForOthers(download)) return undefined;
      throw error;
    }
    const { fileSize } = download;
    return { cacheResult: "JOINED", fileSize, tag: tagOf(nar, fileSize) };
  }

  async #statUpstream(nar: NarRecord, requestId: string): Promise<NarFacts | undefined> {
    const { sizes, passThrough: { isUpstream = () => true } } = this.#deps;
    const found = await statNar(sizes, nar, requestId);
    return found && {
      cacheResult: isUpstream(found.upstream) ? "MISS" : "JOINED",
      fileSize: nar.compression === "none" ? nar.narSize : found.fileSize ?? nar.fileSize,
      tag: tagOf(nar, found.fileSize),
    };
  }
}

/** The narinfo of the row has not led to the file: that of the same path would not, either. */
function unlessDescribed<Found>(found: Found | DescribedNar): Found | undefined {
  return found instanceof DescribedNar ? undefined : found;
}

/** The second result where the first is absent, or fails and the second does not. */
async function orElse<Found>(
  first: () => Promise<Found | undefined>,
  second: () => Promise<Found | undefined>,
): Promise<Found | undefined> {
  let found: Found | undefined;
  try {
    found = await first();
  } catch (error) {
    found = await second();
    if (found === undefined) throw error;
    return found;
  }
  return found ?? await second();
}

interface FoundUnnamed {
  readonly name: NarName;
  readonly facts: NarFacts;
}

/** "elsewhere": another member downloads the file, or has stored it. */
type NotHere = "elsewhere" | undefined;

function whereElse(error: unknown): NotHere {
  if (error instanceof KeptElsewhere) return "elsewhere";
  if (!(error instanceof NotKept)) throw error;
  return undefined;
}

function factsOf({ cacheResult, fileSize, tag }: NarFacts): NarFacts {
  return { cacheResult, fileSize, tag };
}

/** Waits for the first byte, and for all of a small file. Throws when the download has failed. */
async function openDownload(
  nar: NarRecord,
  download: Download,
  { cacheResult, ...reader }: DownloadReader & { readonly cacheResult: CacheResult },
): Promise<NarAnswer> {
  // Before the first wait, because the file may be moved into the store meanwhile.
  const use = download.use(reader.peer);
  try {
    await download.readable(0);
    await download.settledIfSmall(download.fileSize ?? fileSizeLimit(nar));
    await download.readable(0);
    download.promise();
    return downloadAnswer(nar, download, { cacheResult, reader, use });
  } catch (error) {
    use[Symbol.dispose]();
    throw error;
  }
}

interface DownloadAnswerParts {
  readonly cacheResult: CacheResult;
  readonly reader: DownloadReader;
  /** Holds the download's file and lists the client, until it is disposed of. */
  readonly use: Disposable;
}

function downloadAnswer(
  nar: NarRecord,
  download: Download,
  { cacheResult, reader, use }: DownloadAnswerParts,
): NarAnswer {
  return {
    cacheResult,
    fileSize: download.fileSize,
    tag: tagOf(nar, download.fileSize),
    whole() {
      const small = (download.fileSize ?? Infinity) <= WHOLE_BYTES_MAX;
      if (!small || !download.released) return undefined;
      using _over = use;
      return download.bytes();
    },
    async read(start, end) {
      try {
        const begun = download.readable(start, end).catch((error) => {
          // The stream then passes the file through.
          if (!(error instanceof NotKept)) throw error;
        });
        // The part may begin behind the bytes that are here.
        await clock.within(begun, WHOLE_WAIT_MS);
        return download.read(reader, start, end);
      } finally {
        use[Symbol.dispose]();
      }
    },
    [Symbol.asyncDispose]: async () => use[Symbol.dispose](),
  };
}

/** Lookups of names at the upstreams at a time. */
const LOOKUPS_MAX = 64;

interface UnnamedNarServerDeps {
  readonly documents: Pick<DocumentKeeper, "debuginfoSourcesOf">;
  readonly pool: Pick<UpstreamPool, "order" | "isDown">;
  /** Names that no upstream has, as a NegativeCache. */
  readonly absent: {
    has(narName: NarName): boolean;
    add(narName: NarName, clearings: number): void;
    readonly clearings: number;
  };
  readonly loops: Pick<Loops, "isPassedOn">;
  readonly sizes: StatNarDeps;
  readonly passThrough: PassThroughDeps;
}

/** "documented": the upstreams whose debuginfo document names the file. */
type AskedUpstreams = "all" | "documented";

/**
 * A file whose bytes do not have the hash in its name: an upstream, which is a larder, keeps another
 * form of it. The narinfo of the store path shows whether its NAR is right.
 */
class DescribedNar {
  readonly storePathHash: StorePathHash;

  constructor(storePathHash: StorePathHash) {
    this.storePathHash = storePathHash;
  }
}

/**
 * Serves NAR files that no narinfo of ours names: a client may remember the narinfo of a cache that
 * was wiped, or of another one, and a debuginfo document may name the file. No signature covers
 * them, so larder verifies their file hash, which is their name, and does not store them.
 */
export class UnnamedNarServer {
  readonly #deps: UnnamedNarServerDeps;
  readonly #lookups = new SingleFlight<string, FoundNar | undefined>();
  readonly #turns = pLimit(LOOKUPS_MAX);

  constructor(deps: UnnamedNarServerDeps) {
    this.#deps = deps;
  }

  /** `undefined` when no upstream has it now. */
  async open(
    narName: NarName,
    requester: Requester,
    asked: AskedUpstreams = "all",
  ): Promise<NarAnswer | DescribedNar | undefined> {
    const sources = await this.#sourcesOf(narName, asked);
    const first = await this.#find(narName, sources, requester.requestId);
    if (first === undefined) return undefined;
    if (first.storePathHash !== undefined) return new DescribedNar(first.storePathHash);
    // No narinfo says the size. That of one upstream must not count for another, so each has a
    // transfer of its own, one after the other.
    for (const source of sources.toSorted((a, b) => isOf(b, first) - isOf(a, first))) {
      const facts = isOf(source, first)
        ? first
        : await this.#stat(narName, [source], requester.requestId);
      const answer = facts &&
        await this.#openFrom(source, rowOf(narName, facts.fileSize), requester).catch(ifFailed);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  /** True for a name that every upstream lacked of late. */
  isKnownAbsent(narName: NarName): boolean {
    return this.#deps.absent.has(narName);
  }

  /** The facts without the bytes, for HEAD. */
  async stat(
    narName: NarName,
    requestId: string,
    asked: AskedUpstreams = "all",
  ): Promise<NarFacts | DescribedNar | undefined> {
    const found = await this.#find(narName, await this.#sourcesOf(narName, asked), requestId);
    if (found?.storePathHash !== undefined) return new DescribedNar(found.storePathHash);
    if (found === undefined || rowOf(narName, found.fileSize) === undefined) return undefined;
    return { cacheResult: "MISS", fileSize: found.fileSize, tag: hashOf(narName) };
  }

  async #openFrom(
    source: NarSource,
    nar: NarRow | undefined,
    requester: Requester,
  ): Promise<NarAnswer | undefined> {
    if (nar === undefined) return undefined;
    const { attempts, ...deps } = this.#deps.passThrough;
    const candidates = { ...attempts.candidates, metadata: knowing([source]) };
    const only = { ...deps, attempts: { ...attempts, candidates }, verifier: NO_VERIFIER };
    return await openPassThrough(only, nar, requester);
  }

  /** Best first. A document's own upstream comes before all others, under the same name. */
  async #sourcesOf(narName: NarName, asked: AskedUpstreams): Promise<readonly NarSource[]> {
    const { documents, pool } = this.#deps;
    // A database that cannot be read hides no file of an upstream.
    const documented = await documents.debuginfoSourcesOf(narName).catch(() => []);
    if (documented.length > 0 || asked === "documented") return documented;
    const location = `nar/${plainNarName(narName)}`;
    return pool.order("nar").map((upstream) => ({ upstream, location }));
  }

  /** The first upstream that has the file, looked up once for all clients. */
  async #find(
    narName: NarName,
    sources: readonly NarSource[],
    requestId: string,
  ): Promise<FoundNar | undefined> {
    const { absent, loops } = this.#deps;
    if (sources.length === 0 || absent.has(narName)) return undefined;
    // The sender is absent to its own request: that says nothing to others.
    if (loops.isPassedOn) return await this.#stat(narName, sources, requestId);
    const key = [narName, ...sources.map(({ upstream }) => upstream)].join(" ");
    const lookUp = async () => {
      const { clearings } = absent;
      const lacking = new Set<string>();
      const found = await this.#stat(narName, sources, requestId, (url) => lacking.add(url));
      if (found === undefined && this.#isByAll(lacking)) absent.add(narName, clearings);
      return found;
    };
    return await this.#lookups.run(key, () => this.#turns(lookUp)).value;
  }

  /** True if every upstream that is up said so. */
  #isByAll(lacking: ReadonlySet<string>): boolean {
    const { pool } = this.#deps;
    const up = pool.order("nar").filter((upstream) => !pool.isDown(upstream, "nar"));
    return up.length > 0 && up.every((upstream) => lacking.has(upstream));
  }

  #stat(
    narName: NarName,
    sources: readonly NarSource[],
    requestId: string,
    absent?: (upstream: string) => void,
  ): Promise<FoundNar | undefined> {
    const { sizes } = this.#deps;
    const candidates = { ...sizes.candidates, metadata: knowing(sources) };
    const deps = { ...sizes, candidates, ...absent === undefined ? {} : { absent } };
    return statNar(deps, unnamedRow(narName), requestId);
  }
}

type FoundNar = NonNullable<Awaited<ReturnType<typeof statNar>>>;

function isOf({ upstream }: NarSource, found: FoundNar): 0 | 1 {
  return upstream === found.upstream ? 1 : 0;
}

/** The attempts have logged the failure; the next upstream may have the file. */
function ifFailed(error: unknown): undefined {
  if (!(error instanceof Failure)) throw error;
}

/** A verifier that checks nothing: without a narinfo the NAR hash is unknown. */
const NO_VERIFIER = {
  passThrough: () => ({
    write: () => Promise.resolve(),
    end() {},
    measure: new Promise<never>(() => undefined),
    [Symbol.dispose]() {},
  }),
};

/** The metadata of a NAR without a narinfo: its sources alone are known. */
function knowing(sources: readonly NarSource[]): StatNarDeps["candidates"]["metadata"] {
  return {
    findNar: () => Promise.resolve(undefined),
    sourcesOf: () => Promise.resolve(sources),
    narinfosOf: () => Promise.resolve([]),
    apply: () => Promise.resolve(),
  };
}

/** What the name says: the file hash alone decides. NAR hash and NAR size are unknown. */
function unnamedRow(name: NarName): NarRow {
  return {
    name,
    compression: compressionOf(name),
    fileHash: hashOf(name) as FileHash,
    narHash: hashOf(name) as NarHash,
    narSize: 0,
  };
}

/** The same with a size. `undefined` for an uncompressed file without one: it is the NAR's. */
function rowOf(name: NarName, fileSize: number | undefined): NarRow | undefined {
  const facts = unnamedRow(name);
  if (fileSize !== undefined) return { ...facts, narSize: fileSize, fileSize };
  return facts.compression === "none" ? undefined : facts;
}
