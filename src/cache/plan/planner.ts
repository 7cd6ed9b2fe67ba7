import { Failure } from "../../base/failure.ts";
import { ownText } from "../../base/own_text.ts";
import type { MetadataStore, NarinfoRow, NarRecord } from "../../metadata/metadata_store.ts";
import { nameInNarinfo } from "../../nix/narinfo_name.ts";
import {
  type BaseName,
  hashOfBaseName,
  isBaseName,
  nameOfBaseName,
  type StorePathHash,
} from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import type { LastAnswers } from "../../upstream/last_answers.ts";
import type { NarRates } from "../../upstream/pooled_upstream.ts";
import type { PoolAnswer } from "../../upstream/narinfo_query.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { KeptNars } from "../kept/kept_nars.ts";
import { narRowOf } from "../nar/nar_naming.ts";
import type { NarinfoFetches } from "../narinfo/narinfo_fetches.ts";
import { type NegativeCache, seenOfLate } from "../narinfo/serve_narinfo.ts";
import type { PlannedPath, PlannedUpstream } from "./planned_path.ts";

/** Paths of one plan that are looked up at a time, most of them at an upstream. */
const AT_ONCE = 64;

export interface PlannerDeps {
  readonly metadata: Pick<MetadataStore, "findNarinfo" | "findNar" | "sourcesOf">;
  readonly kept: Pick<KeptNars, "canOpen" | "lostAtMs">;
  readonly negative: Pick<NegativeCache, "has">;
  readonly narinfoFetches: Pick<NarinfoFetches, "isInFlight" | "fetch" | "prefetch">;
  readonly pool: Pick<
    UpstreamPool,
    "isEmpty" | "has" | "isDown" | "order" | "prefetchNarinfo" | "probeIfDown"
  >;
  readonly rates: Pick<NarRates, "of">;
  readonly lastAnswers: Pick<LastAnswers, "of">;
  /** The most paths of one plan. */
  readonly pathsMax?: number;
  readonly nowMs: () => number;
}

export const PLAN_PATHS_MAX = 50_000;

export interface PlanOptions {
  /**
   * Paths that are left out, with what only they reach: an earlier plan has them. The plan adds
   * its own.
   */
  readonly seen?: Set<StorePathHash>;
  readonly requestId: string;
  readonly signal: AbortSignal;
  /** Called with each path; the plan goes on when it resolves. */
  readonly tell: (path: PlannedPath) => void | Promise<void>;
}

/** A path of a plan that nobody has looked up yet. */
interface Step {
  readonly hash: StorePathHash;
  readonly name?: string | undefined;
}

/** Where a path is, and its references as far as anybody knows them. */
interface Looked {
  readonly path: PlannedPath;
  readonly references: readonly BaseName[];
}

type Asked = Pick<PlanOptions, "requestId">;

/**
 * Tells where a pull would find store paths: here, at an upstream, or nowhere. It fetches no NAR,
 * counts no use, and starts no prefetch. It asks upstreams for the narinfos that are missing here, as
 * a prefetch does: never before a client, and without an effect on their health.
 */
export class Planner {
  readonly #deps: PlannerDeps;

  constructor(deps: PlannerDeps) {
    this.#deps = deps;
  }

  /** The upstreams in the order in which larder asks them for NARs. */
  upstreams(): readonly PlannedUpstream[] {
    const { pool, rates, lastAnswers } = this.#deps;
    return pool.order("nar").map((url) => ({
      url,
      is_up: !pool.isDown(url, "narinfo"),
      bytes_per_second: rates.of(url) ?? null,
      latency_ms: medianOf(lastAnswers.of(url).latenciesMs) ?? null,
    }));
  }

  /** Tells each path that the roots reach, once. Throws "bad-request" for too many of them. */
  async planClosure(roots: Iterable<StorePathHash>, options: PlanOptions): Promise<void> {
    const { pathsMax = PLAN_PATHS_MAX } = this.#deps;
    const { seen = new Set(), signal, tell } = options;
    const slice = clock.slice(signal);
    const rootsLeft = roots[Symbol.iterator]();
    const waiting: BaseName[] = [];
    const isNew = (storePathHash: StorePathHash) => {
      if (seen.size === seen.add(storePathHash).size) return false;
      if (seen.size <= pathsMax) return true;
      throw new Failure("bad-request", `Cannot plan: over ${pathsMax} paths`);
    };
    const take = (): Step | undefined => {
      const reference = waiting.pop();
      if (reference !== undefined) {
        return { hash: hashOfBaseName(reference), name: nameOfBaseName(reference) };
      }
      for (let root = rootsLeft.next(); !root.done; root = rootsLeft.next()) {
        if (isNew(root.value)) return { hash: root.value };
      }
      return undefined;
    };
    const visit = async ({ hash, name }: Step): Promise<void> => {
      signal.throwIfAborted();
      if (slice.isOver) await slice.yield();
      const { path, references } = await this.#look(hash, name, options);
      for (const reference of references) {
        if (seen.has(hashOfBaseName(reference))) continue;
        // Else the whole narinfo would stay in memory.
        const own = ownText(reference);
        if (isNew(hashOfBaseName(own))) waiting.push(own);
      }
      await tell(path);
    };
    await this.#probeIfDown();
    await eachInTurn(take, visit);
  }

  /** The same for paths without their references. `tell` gets the place of each, too. */
  async planPaths(
    paths: readonly Step[],
    { signal, tell, ...asked }: Asked & Pick<PlanOptions, "signal"> & {
      readonly tell: (path: PlannedPath, at: number) => void;
    },
  ): Promise<void> {
    const slice = clock.slice(signal);
    let taken = 0;
    await this.#probeIfDown();
    await eachInTurn(() => taken < paths.length ? taken++ : undefined, async (at) => {
      signal.throwIfAborted();
      if (slice.isOver) await slice.yield();
      const { hash, name } = paths[at] as Step;
      tell((await this.#look(hash, name, asked)).path, at);
    });
  }

  /** Resolves within a second. */
  async #probeIfDown(): Promise<void> {
    const { pool } = this.#deps;
    await pool.probeIfDown(pool.order("narinfo"), "narinfo");
  }

  async #look(hash: StorePathHash, given: string | undefined, asked: Asked): Promise<Looked> {
    const { metadata, negative, narinfoFetches, pool } = this.#deps;
    const nobody = (state: "nowhere" | "unknown", name = given ?? null) => ({
      path: { hash, name, state, nar: null, bytes: null, upstreams: [] },
      references: [],
    });
    if (negative.has(hash)) return nobody("nowhere");
    const row = await metadata.findNarinfo(hash);
    if (row !== undefined) {
      const offered = await this.#offered(row);
      if (offered !== undefined && offered.path.state !== "unknown") return offered;
      return await this.#askAgain(row, asked) ?? offered ??
        nobody("nowhere", nameInNarinfo(row.body) ?? null);
    }
    if (pool.isEmpty) return nobody("nowhere");
    const request = { requestId: asked.requestId, came: () => undefined };
    const spare = { urls: this.#up(), isComplete: true };
    const narinfo = narinfoFetches.isInFlight(hash)
      ? (await narinfoFetches.fetch({ storePathHash: hash, row, ...request })).narinfo
      : await narinfoFetches.prefetch(hash, { ...request, spare });
    if (narinfo.kind !== "found") return nobody(narinfo.kind === "absent" ? "nowhere" : "unknown");
    const found = await metadata.findNarinfo(hash);
    return found && await this.#offered(found) || nobody("unknown");
  }

  /** Not here, and seen upstream a while ago at best: its narinfo may lead nowhere. */
  async #askAgain(row: NarinfoRow, { requestId }: Asked): Promise<Looked | undefined> {
    const { pool } = this.#deps;
    if (pool.isEmpty) return undefined;
    const { storePathHash: hash, body } = row;
    const answer = await pool.prefetchNarinfo(hash, { urls: this.#up() }, requestId);
    if (answer.kind === "absent") return undefined;
    const references = referencesInNarinfo(body);
    const name = nameInNarinfo(body) ?? null;
    if (answer.kind === "unknown") {
      const nothing = { nar: null, bytes: null, upstreams: [] };
      return { path: { hash, name, state: "unknown", ...nothing }, references };
    }
    const { narinfo } = answer.best;
    const { name: nar, fileSize, narSize } = narRowOf(narinfo);
    const facts = { nar, bytes: fileSize ?? narSize, upstreams: offering(answer) };
    return {
      path: { hash, name, state: "upstream", ...facts },
      references: narinfo.references,
    };
  }

  /**
   * `undefined` where upstreams must be asked for the narinfo again; "unknown" likewise, while the
   * store does not answer.
   */
  async #offered(row: NarinfoRow): Promise<Looked | undefined> {
    const { metadata, kept, nowMs } = this.#deps;
    const nar = await metadata.findNar(row.narName);
    if (nar === undefined) return undefined;
    const { storePathHash: hash, body } = row;
    const path = { hash, name: nameInNarinfo(body) ?? null, nar: nar.name };
    const references = referencesInNarinfo(body);
    const isHere = nar.kept === undefined ? false : await kept.canOpen(nar, "plan");
    if (isHere === true) {
      const bytes = nar.kept?.fileSize ?? null;
      return { path: { ...path, state: "here", bytes, upstreams: [] }, references };
    }
    const unknown: Looked | undefined = isHere === undefined
      ? { path: { ...path, state: "unknown", nar: null, bytes: null, upstreams: [] }, references }
      : undefined;
    if (!seenOfLate(nar, { nowMs: nowMs(), lostAtMs: kept.lostAtMs(nar) })) return unknown;
    const upstreams = await this.#sourcesOf(nar);
    if (upstreams.length === 0) return unknown;
    const bytes = nar.fileSize ?? nar.narSize;
    return { path: { ...path, state: "upstream", bytes, upstreams }, references };
  }

  /** The upstreams of the settings that have the NAR, the preferred one first. */
  async #sourcesOf({ name }: NarRecord): Promise<readonly string[]> {
    const sources = (await this.#deps.metadata.sourcesOf(name)).map(({ upstream }) => upstream);
    return this.#deps.pool.order("nar").filter((url) => sources.includes(url));
  }

  #up(): readonly string[] {
    const { pool } = this.#deps;
    return pool.order("narinfo").filter((url) => !pool.isDown(url, "narinfo"));
  }
}

function offering(answer: Extract<PoolAnswer, { kind: "found" }>): readonly string[] {
  return [answer.best, ...answer.others].map(({ upstream }) => upstream);
}

/**
 * Works on what `take` returns, AT_ONCE at a time, until there is nothing left. The work may add to
 * it. After a failure nothing more is taken.
 */
async function eachInTurn<Item>(
  take: () => Item | undefined,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const over = Promise.withResolvers<void>();
  let running = 0;
  let hasFailed = false;
  const fail = (error: unknown) => {
    hasFailed = true;
    over.reject(error);
  };
  const goOn = () => {
    while (!hasFailed && running < AT_ONCE) {
      const item = take();
      if (item === undefined) break;
      running++;
      work(item).then(() => {
        running--;
        goOn();
      }).catch(fail);
    }
    if (running === 0) over.resolve();
  };
  void Promise.resolve().then(goOn).catch(fail);
  await over.promise;
}

function medianOf(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((one, other) => one - other);
  const median = sorted[Math.floor(sorted.length / 2)];
  return median === undefined ? undefined : Math.round(median);
}

const REFERENCES_REGEXP = /^References: (.*)$/m;

/** The references in a narinfo's text, of which larder has read the narinfo before. */
function referencesInNarinfo(text: string): readonly BaseName[] {
  return (REFERENCES_REGEXP.exec(text)?.[1] ?? "").split(" ").filter(isBaseName);
}
