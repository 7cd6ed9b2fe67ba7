import type { ClientNarinfoRequest, NarinfoResponseWatcher } from "../prefetch/prefetch_ports.ts";
import type { LRUCache } from "lru-cache";
import { Failure, messageOf } from "../../base/failure.ts";
import { lruOf } from "../../base/lru.ts";
import {
  type ChangeWriter,
  type KeptFile,
  type MetadataStore,
  type NarinfoRow,
  type NarRecord,
  type NarRow,
  NEVER_USED_AT_MS,
} from "../../metadata/metadata_store.ts";
import { fingerprintOf } from "../../nix/fingerprint.ts";
import { formatFormerNames } from "../../nix/former_names.ts";
import { formatSha256 } from "../../nix/hash.ts";
import { type NarName, type NarStem, renamedNar } from "../../nix/nar_name.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { formatNarinfo } from "../../nix/narinfo_format.ts";
import { parseNarinfo } from "../../nix/narinfo_parse.ts";
import { withSignatures } from "../../nix/narinfo_signatures.ts";
import { type OwnSignature, signNarinfo } from "../../nix/sign_narinfo.ts";
import type { SecretKey } from "../../nix/signature.ts";
import { hashOfBaseName, type StorePathHash } from "../../nix/store_path.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";
import type { Loops } from "../../upstream/loops.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import { RECOMPRESSED } from "../forms/recompressed.ts";
import type { KeptNars } from "../kept/kept_nars.ts";
import type { CacheResult } from "../nar/nar_answer.ts";
import { isSameFile, narUrlOf, sourceOf } from "../nar/nar_naming.ts";
import type { Demotions } from "../sources/nar_candidates.ts";
import type { Touches } from "../touches.ts";
import type { NarinfoFetches, NarinfoRequest } from "./narinfo_fetches.ts";

/** `text` is `undefined` for an absent narinfo. */
export interface NarinfoAnswer {
  readonly cacheResult: CacheResult;
  readonly text: string | undefined;
  /** The path's NAR file; `undefined` for an absent narinfo. */
  readonly narName: NarName | undefined;
  /** True for the first GET of a prefetched narinfo, and for each HEAD before it. */
  readonly isFirstOfPrefetch: boolean;
  /** True if upstreams were asked first, and could not tell. Default: false. */
  readonly hasAsked?: true;
}

const KNOWN_ABSENT: NarinfoAnswer = {
  cacheResult: "HIT",
  text: undefined,
  narName: undefined,
  isFirstOfPrefetch: false,
};

interface NarinfoServerDeps {
  /** The rows of narinfos, and the signature that goes below each. */
  readonly rows: {
    readonly metadata: Pick<MetadataStore, "findNarinfo" | "findNar" | "sourcesOf">;
    readonly signer: Signer;
  };
  /** Which paths have a row, while the database does not answer. Default: nobody knows. */
  readonly stored?: { has(storePathHash: StorePathHash): boolean } | undefined;
  readonly kept: Pick<KeptNars, "isHere" | "lostAtMs">;
  readonly narinfoFetches: Pick<NarinfoFetches, "fetch">;
  /** Default: no narinfo is asked for again. */
  readonly refresh?: Pick<NarinfoRefresh, "served">;
  /** True for an upstream of the settings. */
  readonly isUpstream: (url: string) => boolean;
  readonly negative: NegativeCache;
  readonly demotions: Demotions;
  readonly touches: Touches;
  readonly prefetch: NarinfoResponseWatcher;
  readonly loops: Pick<Loops, "isPassedOn">;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** Answers narinfo requests: from the metadata, the negative cache, or upstreams. */
export class NarinfoServer {
  readonly #deps: NarinfoServerDeps;
  readonly #outage;
  /** The path of the last lookup that failed. */
  #failedAt: StorePathHash | undefined;

  constructor(deps: NarinfoServerDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "narinfos-read");
  }

  /** Throws "out-of-reach" for a stored narinfo that neither database nor upstreams give. */
  async serve(
    storePathHash: StorePathHash,
    { requestId, isHead }: ClientNarinfoRequest,
  ): Promise<NarinfoAnswer> {
    const { rows: { metadata, signer }, negative, touches, prefetch } = this.#deps;
    // First, since it is in memory.
    if (negative.has(storePathHash)) return KNOWN_ABSENT;
    let row: NarinfoRow | undefined;
    let unread: string | undefined;
    try {
      row = await metadata.findNarinfo(storePathHash);
      if (row === undefined) this.#outage.worked();
    } catch (error) {
      // For example, the database is locked: the upstreams are requested instead.
      unread = messageOf(error);
      this.#failedAt = storePathHash;
      this.#outage.failed("narinfo-lookup-failed", { error: unread });
    }
    // Another request has learned it during the read.
    if (row === undefined && negative.has(storePathHash)) return KNOWN_ABSENT;
    if (row === undefined) {
      const isUnread = unread !== undefined;
      return await this.#fetch({ storePathHash, row, isUnread, requestId }, isHead, unread);
    }
    let nar: NarRecord | undefined;
    try {
      nar = await metadata.findNar(row.narName);
    } catch {
      // A database that cannot be read now hides no narinfo in memory.
    }
    const found = this.#stateOf(row, nar, requestId);
    const state = typeof found === "string" ? found : await found;
    if (state === "leads to its NAR") {
      touches.narinfo(storePathHash);
      const isFirstOfPrefetch = prefetch.hit(row, { requestId, isHead });
      const text = signer.textOf(row);
      const { narName } = row;
      return {
        cacheResult: "HIT",
        text: nar ? asKept(text, nar) : text,
        narName,
        isFirstOfPrefetch,
      };
    }
    return await this.#fetch({ storePathHash, row, isLost: state === "lost", requestId }, isHead);
  }

  /** Looks a failed path up again, without a client. Never rejects. */
  probe(): Promise<void> {
    const { metadata } = this.#deps.rows;
    const at = this.#failedAt;
    return this.#outage.probe(async () => at && await metadata.findNarinfo(at));
  }

  /** `unread`: why the database could not be read. */
  async #fetch(
    request: NarinfoRequest,
    isHead: boolean,
    unread?: string,
  ): Promise<NarinfoAnswer> {
    const { narinfoFetches, prefetch, rows: { signer }, touches, loops } = this.#deps;
    const { narinfo, isJoined, hasJoinedPrefetch } = await narinfoFetches.fetch(request);
    const cacheResult = isJoined ? "JOINED" : "MISS";
    if (narinfo.kind === "found") {
      const { row } = narinfo;
      // A prefetched narinfo is stored without a use.
      if (hasJoinedPrefetch) touches.narinfo(row.storePathHash);
      const clientRequest = { requestId: request.requestId, isHead };
      const isFirstOfPrefetch = hasJoinedPrefetch && prefetch.hit(row, clientRequest);
      if (!hasJoinedPrefetch && !loops.isPassedOn) {
        prefetch.missed(narinfo, { ...clientRequest, isJoined });
      }
      const { narName } = row;
      return { cacheResult, text: signer.textOf(row), narName, isFirstOfPrefetch };
    }
    const { row, storePathHash: hash } = request;
    if (unread !== undefined && this.#deps.stored?.has(hash)) {
      throw new Failure("out-of-reach", `Cannot read a stored narinfo: ${unread}`, { hash });
    }
    // Nobody could tell: its NAR may come from an upstream that had it. A client that gets 404
    // would not ask again for an hour.
    const { isUpstream } = this.#deps;
    if (
      row === undefined || narinfo.kind === "absent" ||
      !await this.#hasSourceOf(row.narName, isUpstream)
    ) {
      return { cacheResult, text: undefined, narName: undefined, isFirstOfPrefetch: false };
    }
    const { storePathHash, narName } = row;
    touches.narinfo(storePathHash);
    const text = signer.textOf(row);
    return { cacheResult: "HIT", text, narName, isFirstOfPrefetch: false, hasAsked: true };
  }

  /**
   * Other than "leads to its NAR", upstreams must be asked for the narinfo again. It promises only
   * what it must wait for: a hit in memory waits for nothing.
   */
  #stateOf(
    row: NarinfoRow,
    nar: NarRecord | undefined,
    requestId: string,
  ): NarState | Promise<NarState> {
    if (nar === undefined) return "leads to its NAR";
    const isHere = this.#deps.kept.isHere(nar, requestId);
    if (typeof isHere !== "boolean") {
      return isHere.then((isHere) => this.#stateWith(row, nar, { isHere, requestId }));
    }
    return this.#stateWith(row, nar, { isHere, requestId });
  }

  #stateWith(
    row: NarinfoRow,
    nar: NarRecord,
    { isHere, requestId }: { readonly isHere: boolean; readonly requestId: string },
  ): NarState | Promise<NarState> {
    if (isHere) {
      this.#deps.refresh?.served(row, nar, requestId);
      return "leads to its NAR";
    }
    const gone = nar.kept === undefined ? "may be gone" : "lost";
    const { demotions, kept, nowMs } = this.#deps;
    if (!seenOfLate(nar, { nowMs: nowMs(), lostAtMs: kept.lostAtMs(nar) })) return gone;
    if (demotions.none) return "leads to its NAR";
    return this.#maySend(row, nar).then((may) => may ? "leads to its NAR" : gone);
  }

  async #maySend(row: NarinfoRow, nar: NarRecord): Promise<boolean> {
    const { demotions } = this.#deps;
    return await this.#hasSourceOf(nar.name, (upstream) => demotions.maySend(row, upstream));
  }

  /** True also where the database cannot be read: the NAR may come from an upstream by its name. */
  async #hasSourceOf(narName: NarName, isMeant: (upstream: string) => boolean): Promise<boolean> {
    const { metadata } = this.#deps.rows;
    const sources = await metadata.sourcesOf(narName).catch(() => undefined);
    return sources === undefined || sources.some(({ upstream }) => isMeant(upstream));
  }
}

/** "lost": its file was kept. "may be gone": no upstream was seen with it of late. */
type NarState = "leads to its NAR" | "may be gone" | "lost";

/**
 * How long a narinfo whose NAR is not here is served after an upstream was last seen with it. A
 * client asks for the NAR within minutes, and upstreams lose NARs seldom.
 */
const SEEN_MAX_MS = 60 * 60 * 1_000;

/** True if an upstream was seen with the NAR within the hour, and since its file here was lost. */
export function seenOfLate(
  { seenAtMs = 0 }: NarRecord,
  { nowMs, lostAtMs = 0 }: { readonly nowMs: number; readonly lostAtMs: number | undefined },
): boolean {
  return nowMs - seenAtMs <= SEEN_MAX_MS && seenAtMs > lostAtMs;
}

/** The lines about the NAR file. No signature covers them. */
const FILE_LINE_REGEXP = /^(?:URL|Compression|FileHash|FileSize): .*\n/gm;

/** The text of a narinfo, with the lines of the file that larder keeps of its NAR. */
export function asKept(text: string, nar: NarRecord): string {
  const { name, kept } = nar;
  if (kept === undefined || isClaimed(nar, kept)) return text;
  const { form = nar.compression, fileHash, fileSize } = kept;
  const lines = `URL: ${narUrlOf(renamedNar(name, form))}\nCompression: ${form}\n` +
    `FileHash: ${formatSha256(fileHash)}\nFileSize: ${fileSize}\n`;
  return text.replace(FILE_LINE_REGEXP, (line) => line.startsWith("URL") ? lines : "");
}

/** True for the file of the narinfo's claims. That of an upstream's form of the NAR has none. */
function isClaimed(
  { compression, fileHash: claimedHash, fileSize: claimedSize }: NarRecord,
  { form, fileHash, fileSize }: KeptFile,
): boolean {
  if (form !== undefined) return false;
  if (claimedHash === undefined && compression === RECOMPRESSED) return false;
  return fileHash === (claimedHash ?? fileHash) && fileSize === (claimedSize ?? fileSize);
}

/** Adds our signature beside the upstream's. */
export interface Signer {
  sign(narinfo: Narinfo): OwnSignature | undefined;
  /** The text to serve: the stored one, with a signature of the current key. */
  textOf(row: NarinfoRow): string;
  /** The signed names by which clients remember the NAR; `undefined` without a key. */
  formerNames(
    nar: Pick<Narinfo, "narHash" | "narSize">,
    stems: readonly NarStem[],
  ): string | undefined;
}

/** A signer of narinfos with a trusted signature. Without a key it signs nothing. */
export function createSigner(key: SecretKey | undefined): Signer {
  const publicKey = key?.publicKey.text;

  function sign(narinfo: Narinfo): OwnSignature | undefined {
    return key && signNarinfo(key, narinfo);
  }

  return {
    sign,
    formerNames: (nar, stems) => key && formatFormerNames(key, nar, stems),
    textOf(row) {
      if (publicKey === undefined || !row.trusted) return row.body;
      const kept = row.ownSignature;
      // The key may have changed since the narinfo was stored; signing takes 20 µs.
      const signature = kept?.publicKey === publicKey ? kept : sign(parseNarinfo(row.body));
      return signature === undefined ? row.body : `${row.body}Sig: ${signature.text}\n`;
    },
  };
}

/** A bulk query of a large system asks for some ten thousand paths. */
const ENTRIES_MAX = 50_000;

/** Store paths or documents that no upstream has, remembered for a short time. */
export class NegativeCache<Name extends string = StorePathHash> {
  readonly #entries: LRUCache<Name, true> | undefined;
  #clearings = 0;

  /** A cache of `ttlMs`; with 0 it remembers nothing. */
  constructor(ttlMs: number) {
    this.#entries = ttlMs > 0 ? lruOf({ countMax: ENTRIES_MAX, ttlMs }) : undefined;
  }

  has(name: Name): boolean {
    return this.#entries?.get(name) ?? false;
  }

  /** The count of clearings: read it before the request, for `add`. */
  get clearings(): number {
    return this.#clearings;
  }

  /**
   * Call it only when every upstream answered that it does not have `name`. Ignored when
   * `clearings` has changed since the request began.
   */
  add(name: Name, clearings: number): void {
    if (clearings === this.#clearings) this.#entries?.set(name, true);
  }

  /** Call it when an upstream is up again: it may have any of the entries. */
  clear(): void {
    this.#clearings++;
    this.#entries?.clear();
  }

  /** Call it when `name` is here: a request that began before may not report it absent. */
  remove(name: Name): void {
    this.#clearings++;
    this.#entries?.delete(name);
  }
}

/** Requests in flight; a narinfo beyond them waits until it is served again. */
const AT_ONCE_MAX = 8;

/** Some 10 MB of names. A forgotten one is asked for again. */
const ASKED_MAX = 50_000;

interface NarinfoRefreshDeps {
  readonly pool: Pick<UpstreamPool, "spare" | "prefetchNarinfo">;
  readonly metadata: ChangeWriter;
  /** How old a served narinfo may be; 0: as old as it is. */
  readonly refreshMs: number;
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "debug">;
}

/**
 * Asks upstreams again for narinfos whose NARs are here, in the background, for signatures that came
 * later. Nothing else of a narinfo changes.
 */
export class NarinfoRefresh {
  readonly #deps: NarinfoRefreshDeps;
  readonly #askedAtMs = lruOf<StorePathHash, number>({ countMax: ASKED_MAX });
  readonly #running = new Set<Promise<void>>();

  constructor(deps: NarinfoRefreshDeps) {
    this.#deps = deps;
  }

  /** A client gets the stored narinfo. Returns at once; never rejects. */
  served(row: NarinfoRow, nar: NarRecord, requestId: string): void {
    const { refreshMs, nowMs } = this.#deps;
    const { storePathHash } = row;
    const atMs = nowMs();
    // An upload is no upstream's, and a narinfo without its NAR is asked for before it is served.
    if (refreshMs === 0 || nar.seenAtMs === undefined || nar.kept === undefined) return;
    const askedAtMs = Math.max(nar.seenAtMs, this.#askedAtMs.get(storePathHash) ?? 0);
    if (atMs - askedAtMs <= refreshMs || this.#running.size >= AT_ONCE_MAX) return;
    this.#askedAtMs.set(storePathHash, atMs);
    const running = this.#refresh(row, nar, requestId)
      .catch((error) => {
        this.#deps.log.debug("narinfo not refreshed", { error: messageOf(error) });
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves when no request is in flight. */
  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #refresh(row: NarinfoRow, nar: NarRecord, requestId: string): Promise<void> {
    const { pool, metadata, nowMs } = this.#deps;
    const { storePathHash, ownSignature } = row;
    const { kept, ...facts } = nar;
    const spare = pool.spare();
    if (spare === "later" || kept === undefined) return void this.#askedAtMs.delete(storePathHash);
    const answer = await pool.prefetchNarinfo(storePathHash, spare, requestId);
    if (answer.kind !== "found") return;
    const stored = parseNarinfo(row.body);
    const offers = [answer.best, ...answer.others];
    const same = offers.filter(({ narinfo }) => fingerprintOf(narinfo) === fingerprintOf(stored));
    if (same.length === 0) return;
    const narinfo = same.reduce((all, offer) => withSignatures(all, offer.narinfo), stored);
    const url = narUrlOf(row.narName);
    const body = formatNarinfo(narinfo, { url, withoutSignature: ownSignature?.text });
    const seen: NarRow = { ...facts, seenAtMs: nowMs() };
    await metadata.apply([{
      kind: "put-narinfo",
      row: { ...row, body },
      references: [...new Set(narinfo.references.map(hashOfBaseName))],
      nar: seen,
      sources: same.filter((offer) => isSameFile(offer.narinfo, nar)).map(sourceOf),
      atMs: NEVER_USED_AT_MS,
      // An upload or a new download may have come meanwhile.
      onlyIf: { body: row.body, at: kept.at },
    }]);
  }
}
