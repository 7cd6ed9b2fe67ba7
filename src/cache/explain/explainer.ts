import { Failure, messageOf } from "../../base/failure.ts";
import type { MetadataStore, NarinfoRow, NarRecord } from "../../metadata/metadata_store.ts";
import type { ColdEntry } from "../../metadata/space_keeper.ts";
import { fingerprintOf } from "../../nix/fingerprint.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { parseNarinfo } from "../../nix/narinfo_parse.ts";
import type { PublicKey } from "../../nix/signature.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { TrustedKeys } from "../../nix/trusted_keys.ts";
import { nameInNarinfo } from "../../nix/narinfo_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { AskedUpstreams } from "../../upstream/asked_upstreams.ts";
import type { Downloads } from "../download/downloads.ts";
import type { KeptNars } from "../kept/kept_nars.ts";
import type {
  PathRecord,
  RecordedNar,
  RecordedPace,
  UpstreamAnswer,
} from "../nar/store_path_names.ts";
import type { NegativeCache } from "../narinfo/serve_narinfo.ts";
import type {
  ExplainedAnswer,
  ExplainedSignature,
  Explanation,
  PinReaching,
} from "./explanation.ts";
import { SLOW_ANSWER_MS } from "../../upstream/upstream.ts";
import { SLOW_BYTES_PER_SECOND } from "../sources/nar_candidates.ts";
import { reasonsOf } from "./reasons.ts";

/** The entries that eviction takes next, read once for each explanation. */
const COLDEST_MAX = 1_000;

/** Further pins that reach a path are counted alone. */
const PINS_MAX = 100;

/** In the log, where an explanation finds a file damaged. */
const REQUEST_ID = "explain";

export interface ExplainerDeps {
  readonly metadata: Pick<
    MetadataStore,
    "findNarinfo" | "findNar" | "sourcesOf" | "coldest" | "pathTimes"
  >;
  readonly pins: PinsOfPath;
  /** The keys of upstreams and uploads. */
  readonly keys: readonly PublicKey[];
  readonly kept: Pick<KeptNars, "canOpen">;
  readonly negative: Pick<NegativeCache, "has">;
  readonly record: Pick<PathRecord, "of" | "ofNar" | "userAt">;
  readonly downloads: Pick<Downloads, "progressOf">;
  readonly waits: Pick<AskedUpstreams, "now">;
  readonly log: Pick<Logger, "debug">;
  /** Default: there is a size limit. */
  readonly hasLimit?: () => boolean;
}

/** The pinned roots whose closures contain a path. */
export interface PinsOfPath {
  /** Throws "overloaded" if the closures are too large to look at. */
  rootsReaching(
    target: StorePathHash,
    signal: AbortSignal,
  ): Promise<readonly StorePathHash[]>;
}

export interface ExplainOptions {
  /** Name of the path, as requested. */
  readonly name?: string | undefined;
  readonly signal: AbortSignal;
}

/** Explains why a request for a store path is a hit or a miss. */
export class Explainer {
  readonly #deps: ExplainerDeps;
  readonly #keys: TrustedKeys;

  constructor(deps: ExplainerDeps) {
    this.#deps = deps;
    this.#keys = new TrustedKeys(deps.keys);
  }

  /** Expensive: the caller lets such calls take turns. */
  async explain(
    storePathHash: StorePathHash,
    { name: givenName, signal }: ExplainOptions,
  ): Promise<Explanation> {
    const { metadata, kept, negative, record } = this.#deps;
    const row = await metadata.findNarinfo(storePathHash);
    const known = row && await metadata.findNar(row.narName);
    const isOpen = known?.kept === undefined ? false : await kept.canOpen(known, REQUEST_ID);
    const isLost = known?.kept !== undefined && isOpen === false;
    const isAway = isOpen === undefined;
    const nar = known && isLost ? withoutFile(known) : known;
    const upstreams = row === undefined
      ? []
      : (await metadata.sourcesOf(row.narName)).map(({ upstream }) => upstream);
    const recorded = record.of(storePathHash);
    // Beyond the eviction of its rows.
    const narName = nar?.name ?? recorded.narName;
    const transfers = narName && record.ofNar(narName);
    const times = await metadata.pathTimes(storePathHash);
    const download = nar === undefined || nar.kept !== undefined ? null : this.#download(nar.name);
    const facts = {
      hash: storePathHash,
      name: (row && nameInNarinfo(row.body)) ?? recorded.name ?? givenName ?? null,
      verdict: download !== null
        ? "downloading" as const
        : isAway
        ? "storage_away" as const
        : findingOf(row, nar, negative.has(storePathHash)),
      narinfo: row === undefined ? null : {
        trusted: row.trusted,
        ...this.#signaturesIn(row.body),
        upstreams,
      },
      nar: nar === undefined ? null : {
        name: nar.name,
        is_stored: nar.kept !== undefined,
        is_lost: isLost,
        file_bytes: nar.kept?.fileSize ?? nar.fileSize ?? null,
        nar_bytes: nar.narSize,
        stored_at: iso(nar.kept?.keptAtMs),
        came_at: iso(nar.kept?.form === undefined ? nar.kept?.keptAtMs : nar.kept.cameAtMs),
        recompressed: nar.kept?.form ?? null,
        seen_at: iso(nar.seenAtMs),
        from: sendersOf(transfers?.senders, upstreams),
        download,
        pace: transfers?.pace === undefined ? null : explainedPace(transfers.pace),
      },
      unstored: nar?.kept === undefined && transfers !== undefined ? unstored(transfers) : null,
      answers: recorded.answers.map(explainedAnswer),
      used_at: iso(times.usedAtMs),
      used_by: times.usedAtMs === undefined
        ? null
        : record.userAt(times.usedAtMs, [storePathHash, ...narName ? [narName] : []]) ?? null,
      evicted_at: iso(times.evictedAtMs),
      ...await this.#pinsReaching(storePathHash, signal),
      has_limit: this.#deps.hasLimit?.() ?? true,
      eviction_rank: await this.#evictionRank(storePathHash, nar),
    };
    return { ...facts, reasons: reasonsOf(facts) };
  }

  #download(narName: NarName): NonNullable<Explanation["nar"]>["download"] {
    const progress = this.#deps.downloads.progressOf(narName);
    return progress === undefined ? null : {
      state: progress.state,
      from: this.#deps.waits.now(narName),
      received_bytes: progress.receivedBytes,
      file_bytes: progress.fileSize ?? null,
      bytes_per_second: progress.bytesPerSecond ?? null,
    };
  }

  #signaturesIn(body: string) {
    const narinfo = parsedNarinfo(body);
    if (narinfo === undefined) return { keys: [], signatures: [] };
    const fingerprint = fingerprintOf(narinfo);
    const signatures = narinfo.signatures.map((one): ExplainedSignature => {
      return { key: one.keyName, check: this.#keys.check(one, fingerprint) };
    });
    const keys = signatures.filter(({ check }) => check === "verified").map(({ key }) => key);
    return { keys, signatures };
  }

  /** `null`: the closures are too large to look at. */
  async #pinsReaching(
    target: StorePathHash,
    signal: AbortSignal,
  ): Promise<{ pins: readonly PinReaching[] | null; pin_count: number | null }> {
    const { metadata, pins, log } = this.#deps;
    let found: readonly StorePathHash[];
    try {
      found = await pins.rootsReaching(target, signal);
    } catch (error) {
      if (!(error instanceof Failure) || error.kind !== "overloaded") throw error;
      log.debug("pins of a path unknown", { error: messageOf(error) });
      return { pins: null, pin_count: null };
    }
    // Its own pin first: the page shows how to remove it.
    const first = found.toSorted((one, other) => Number(other === target) - Number(one === target));
    const named = await Promise.all(
      first.slice(0, PINS_MAX).map(async (root) => {
        const row = await metadata.findNarinfo(root);
        return { root, name: (row && nameInNarinfo(row.body)) ?? null };
      }),
    );
    return { pins: named, pin_count: found.length };
  }

  async #evictionRank(
    storePathHash: StorePathHash,
    nar: NarRecord | undefined,
  ): Promise<number | null> {
    if (nar?.kept === undefined) return null;
    const coldest = await this.#deps.metadata.coldest(COLDEST_MAX);
    const index = coldest.findIndex((entry: ColdEntry) => entry.storePathHash === storePathHash);
    return index < 0 ? null : index + 1;
  }
}

/** `undefined`: an older larder took it. */
function parsedNarinfo(body: string): Narinfo | undefined {
  try {
    return parseNarinfo(body);
  } catch {
    return undefined;
  }
}

function withoutFile({ kept: _, ...nar }: NarRecord): NarRecord {
  return nar;
}

/** The upstreams that sent a file. An only one that has it did: other members had it from there. */
function sendersOf(
  senders: readonly string[] | undefined,
  upstreams: readonly string[],
): readonly string[] | null {
  if (senders?.every((sender) => upstreams.includes(sender))) return senders;
  return upstreams.length === 1 ? upstreams : null;
}

function unstored({ unstored, failures }: RecordedNar) {
  if (unstored === undefined) return null;
  const { reason, atMs } = unstored;
  const room = reason === "no_room" ? unstored : undefined;
  return {
    reason,
    at: instant(atMs),
    bytes: room?.bytes ?? null,
    limit_bytes: room?.limitBytes ?? null,
    limit_source: room?.limitSource ?? null,
    pinned_bytes: room?.pinnedBytes ?? null,
    answers: failures.map(explainedAnswer),
  };
}

function explainedAnswer(answer: UpstreamAnswer): ExplainedAnswer {
  const { upstream, result, status = null, waitedMs = null, tookMs = null, atMs } = answer;
  return {
    ...{
      upstream,
      result,
      status,
      wrong_key: answer.wrongKey ?? null,
      waited_ms: waitedMs,
      took_ms: tookMs,
    },
    at: instant(atMs),
  };
}

function explainedPace({ upstream, bytesPerSecond, ms, atMs }: RecordedPace) {
  const is_slow = bytesPerSecond < SLOW_BYTES_PER_SECOND && ms >= SLOW_ANSWER_MS;
  return {
    ...{ upstream, bytes_per_second: bytesPerSecond, ms: Math.round(ms), is_slow },
    at: instant(atMs),
  };
}

function findingOf(
  row: NarinfoRow | undefined,
  nar: NarRecord | undefined,
  isAbsent: boolean,
): Explanation["verdict"] {
  if (row === undefined) return isAbsent ? "absent" : "not_stored";
  return nar?.kept === undefined ? "nar_not_stored" : "hit";
}

function iso(ms: number | undefined): string | null {
  return ms === undefined ? null : instant(ms);
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}
