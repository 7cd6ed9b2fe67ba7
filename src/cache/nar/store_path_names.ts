import type { Facts } from "../../base/failure.ts";
import { lruOf } from "../../base/lru.ts";
import { ownText } from "../../base/own_text.ts";
import type { NamedPath, NarFinder, NarinfoFinder } from "../../metadata/metadata_store.ts";
import { type NarName, stemOf } from "../../nix/nar_name.ts";
import { nameInNarinfo } from "../../nix/narinfo_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { LimitSource } from "../../space/size_limit.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { RivalWait } from "../../upstream/pooled_upstream.ts";
import type { NotKeptBy } from "./publish_nar.ts";

/** Some 100 bytes each. */
const NAMES_MAX = 10_000;

interface StorePathNamesDeps {
  readonly metadata: Pick<NarFinder, "narinfosOf"> & Pick<NarinfoFinder, "findNarinfo">;
  readonly log: Pick<Logger, "debug">;
  /** Keeps names of paths beyond their eviction. Default: none are kept. */
  readonly record?: Pick<PathRecord, "named">;
}

/** Names such as `hello-2.12` of the store objects in NAR files, for people. */
export class StorePathNames {
  readonly #deps: StorePathNamesDeps;
  readonly #known = lruOf<string, string>({ countMax: NAMES_MAX });

  constructor(deps: StorePathNamesDeps) {
    this.#deps = deps;
  }

  /** A recent name. */
  known(narName: string): string | undefined {
    return this.#known.get(narName);
  }

  /** Notes the store path of a NAR, for the log lines of the download that follows. */
  note(narName: NarName, { storePathHash, name }: NamedPath): void {
    // Each is a part of its narinfo.
    this.#known.set(narName, ownText(name));
    this.#deps.record?.named(storePathHash, name, narName);
  }

  /**
   * Synchronous for a recent name. A NAR file may belong to several store paths; most often their
   * names are the same. `undefined` without a known store path.
   */
  of(narName: NarName): string | Promise<string | undefined> {
    return this.#known.get(narName) ?? this.#find(narName);
  }

  /** Name of a store path; its NAR may be absent. `undefined` without a narinfo. Never rejects. */
  async ofPath(storePathHash: StorePathHash): Promise<string | undefined> {
    const { metadata, log } = this.#deps;
    try {
      const row = await metadata.findNarinfo(storePathHash);
      return row && nameInNarinfo(row.body);
    } catch {
      log.debug("store path without a name", { hash: storePathHash });
      return undefined;
    }
  }

  async #find(narName: NarName): Promise<string | undefined> {
    const { metadata, log } = this.#deps;
    try {
      const [storePathHash] = await metadata.narinfosOf(narName);
      const name = storePathHash && await this.ofPath(storePathHash);
      if (storePathHash === undefined || name === undefined) return undefined;
      this.note(narName, { storePathHash, name });
      return name;
    } catch {
      log.debug("nar without a name", { nar: narName });
      return undefined;
    }
  }
}

/** The same log. Its lines about a NAR file also have the `name` of its store path, if known. */
export function namedLog(log: Logger, names: Pick<StorePathNames, "known">): Logger {
  const named = (facts: Facts | undefined): Facts | undefined => {
    if (facts?.["nar"] === undefined || facts["name"] !== undefined) return facts;
    const name = names.known(String(facts["nar"]));
    return name === undefined ? facts : { ...facts, name };
  };
  return {
    debug: (msg, facts) => log.debug(msg, named(facts)),
    info: (msg, facts) => log.info(msg, named(facts)),
    event: (kind, facts, level) => log.event(kind, named(facts), level),
    levels: log.levels,
  };
}

/** Some 800 bytes each, with the record of its NAR file. */
const PATHS_MAX = 5_000;

/** Some 150 bytes each; a path has two, of its narinfo and of its NAR file. */
const COMMAND_USES_MAX = 20_000;

/** An upstream's answer about a store path, or about its NAR file. */
export interface UpstreamAnswer {
  readonly upstream: string;
  /** `found`, `absent`, `down` if it got no request, `late` if its answer was not awaited, or why its answer was of no use. */
  readonly result: string;
  /** HTTP status of a response that is an error. */
  readonly status?: number;
  /** The name of a given key that did not make the signature of that name. */
  readonly wrongKey?: string;
  /** A client waited so long for it, because its priority is better than that of the sender. */
  readonly waitedMs?: number;
  /** How long it took to answer, if that is long. */
  readonly tookMs?: number;
  readonly atMs: number;
}

/** The answers of upstreams about a store path. */
interface RecordedPath {
  /** Name such as `hello-2.12`; `undefined` if larder has not met it. */
  readonly name: string | undefined;
  /** Its NAR, which larder may have forgotten; `undefined` if larder has not met it. */
  readonly narName: NarName | undefined;
  /** The newest answer of each upstream. */
  readonly answers: readonly UpstreamAnswer[];
}

/** Why larder did not store a NAR file. */
type UnstoredNar =
  /** No upstream sent it. */
  | { readonly reason: "not_sent" }
  /** It failed to take the file. */
  | { readonly reason: NotKeptBy }
  /** It did not fit. The size is that of the NAR where its file's is unknown. */
  | {
    readonly reason: "no_room";
    readonly bytes: number;
    readonly limitBytes: number;
    readonly limitSource: LimitSource;
    readonly pinnedBytes: number;
  };

/** The last transfers of a NAR file. */
export interface RecordedNar {
  /** The upstreams that sent the stored file; `undefined` if that is unknown. */
  readonly senders: readonly string[] | undefined;
  /** The newest failure of each upstream since then. */
  readonly failures: readonly UpstreamAnswer[];
  /** The end of the last transfer that stored nothing; `undefined` if there is none. */
  readonly unstored: UnstoredNar & { readonly atMs: number } | undefined;
  /** How fast the last one came, or comes; `undefined` for a small file. */
  readonly pace: RecordedPace | undefined;
}

/** How fast the bytes of a NAR file came. */
export interface RecordedPace {
  readonly upstream: string;
  readonly bytesPerSecond: number;
  readonly ms: number;
  readonly atMs: number;
}

const NOTHING: RecordedPath = { name: undefined, narName: undefined, answers: [] };
const NO_TRANSFER: RecordedNar = {
  senders: undefined,
  failures: [],
  unstored: undefined,
  pace: undefined,
};

/** Upstreams' answers about the newest paths, and the downloads of their NARs. In memory only. */
export class PathRecord {
  readonly #nowMs: () => number;
  readonly #paths = lruOf<StorePathHash, RecordedPath>({ countMax: PATHS_MAX });
  readonly #nars = lruOf<NarName, RecordedNar>({ countMax: PATHS_MAX });
  /** By the hash of a path, or the stem of a file's name. */
  readonly #commandUses = lruOf<string, number>({ countMax: COMMAND_USES_MAX });
  readonly #sinceMs: number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#sinceMs = nowMs();
  }

  /** A command of larder got a narinfo, by its hash, or a NAR file. Call it behind the touch. */
  usedByCommand(name: StorePathHash | NarName): void {
    this.#commandUses.set(ownText(stemOf(name)), this.#nowMs());
  }

  /**
   * Whose the last use of a path was, at that time: a client's, or that of larder's own commands.
   * `undefined`: unknown, since it was before the start of larder, or too many commands used others.
   */
  userAt(
    usedAtMs: number,
    names: readonly (StorePathHash | NarName)[],
  ): "client" | "command" | undefined {
    const uses = names.map((name) => this.#commandUses.get(stemOf(name)) ?? -Infinity);
    if (Math.max(...uses) >= usedAtMs) return "command";
    const isFull = this.#commandUses.size >= COMMAND_USES_MAX;
    return isFull || usedAtMs < this.#sinceMs ? undefined : "client";
  }

  /** `name`: the path's, in an answer that has it. */
  answered(
    storePathHash: StorePathHash,
    answer: Omit<UpstreamAnswer, "atMs">,
    name?: string,
  ): void {
    const known = this.#paths.peek(storePathHash) ?? NOTHING;
    const before = known.answers.find(({ upstream }) => upstream === answer.upstream);
    const wait = before?.result === "late" ? { waitedMs: before.waitedMs ?? 0 } : {};
    this.#paths.set(storePathHash, {
      ...known,
      name: known.name ?? (name === undefined ? undefined : ownText(name)),
      // An answer that came too late: what the client waited stays with it.
      answers: this.#withNewest(known.answers, { ...wait, ...answer }),
    });
  }

  /** A client waited for the better upstream's answer about the path. */
  waited(storePathHash: StorePathHash, upstream: string, { ms, isLate }: RivalWait): void {
    const known = this.#paths.peek(storePathHash) ?? NOTHING;
    const answer = known.answers.find((one) => one.upstream === upstream);
    const late = { upstream, result: "late" };
    const { atMs: _, ...now } = isLate || answer === undefined ? { ...late, atMs: 0 } : answer;
    const answers = this.#withNewest(known.answers, { ...now, waitedMs: ms });
    this.#paths.set(storePathHash, { ...known, answers });
  }

  /** A store path has a name and a NAR, whatever upstreams said. */
  named(storePathHash: StorePathHash, name: string, narName: NarName): void {
    const known = this.#paths.peek(storePathHash) ?? NOTHING;
    this.#paths.set(storePathHash, { ...known, name: ownText(name), narName });
  }

  /** At most `countMax` store paths whose name contains `text`, in any case: the newest first. */
  findNamed(text: string, countMax: number): readonly NamedPath[] {
    const sought = text.toLowerCase();
    const found: NamedPath[] = [];
    for (const [storePathHash, { name }] of this.#paths.entries()) {
      if (found.length >= countMax) break;
      if (name?.toLowerCase().includes(sought)) found.push({ storePathHash, name });
    }
    return found;
  }

  /** Since the start of larder. */
  of(storePathHash: StorePathHash): RecordedPath {
    return this.#paths.get(storePathHash) ?? NOTHING;
  }

  /** `upstreams`: those whose bytes the stored file has. */
  sent(narName: NarName, upstreams: readonly string[]): void {
    const { pace } = this.ofNar(narName);
    this.#nars.set(narName, { ...NO_TRANSFER, senders: upstreams, pace });
  }

  /** A NAR file came so fast, or comes. */
  paced(narName: NarName, pace: Omit<RecordedPace, "atMs">): void {
    this.#nars.set(narName, { ...this.ofNar(narName), pace: { ...pace, atMs: this.#nowMs() } });
  }

  /** An upstream did not send the whole file. */
  narFailed(narName: NarName, failure: Omit<UpstreamAnswer, "atMs">): void {
    const known = this.ofNar(narName);
    const failures = this.#withNewest(known.failures, failure);
    this.#nars.set(narName, { ...known, failures });
  }

  /** A transfer ended, and larder stored nothing. A file without room may have failed nowhere. */
  narNotStored(narName: NarName, why: UnstoredNar): void {
    const known = this.ofNar(narName);
    const failures = why.reason === "not_sent" ? known.failures : [];
    this.#nars.set(narName, { ...known, failures, unstored: { ...why, atMs: this.#nowMs() } });
  }

  /** Since the start of larder. */
  ofNar(narName: NarName): RecordedNar {
    return this.#nars.get(narName) ?? NO_TRANSFER;
  }

  #withNewest(
    answers: readonly UpstreamAnswer[],
    answer: Omit<UpstreamAnswer, "atMs">,
  ): readonly UpstreamAnswer[] {
    const others = answers.filter(({ upstream }) => upstream !== answer.upstream);
    return [...others, { ...answer, atMs: this.#nowMs() }];
  }
}
