import pLimit from "p-limit";
import { Failure } from "../base/failure.ts";
import { SingleFlight } from "../base/single_flight.ts";
import type { DocumentKeeper, NarRow, NarSource } from "../metadata/metadata_store.ts";
import type { FileHash, NarHash } from "../nix/hash.ts";
import { compressionOf, hashOf, type NarName, plainNarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Loops } from "../upstream/loops.ts";
import type { UpstreamPool } from "../upstream/upstream_pool.ts";
import type { NarAnswer, NarFacts, Requester } from "./nar/nar_answer.ts";
import { openPassThrough, type PassThroughDeps } from "./pass_through/pass_through.ts";
import { statNar, type StatNarDeps } from "./sources/nar_attempts.ts";

/** Lookups of names at the upstreams at a time. */
const LOOKUPS_MAX = 64;

export interface UnnamedNarServerDeps {
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
export class DescribedNar {
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
    return statNar(deps, factsOf(narName), requestId);
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
function factsOf(name: NarName): NarRow {
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
  const facts = factsOf(name);
  if (fileSize !== undefined) return { ...facts, narSize: fileSize, fileSize };
  return facts.compression === "none" ? undefined : facts;
}
