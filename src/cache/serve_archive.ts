import type { DocumentKeeper } from "../metadata/document_keeper.ts";
import type { NarRow, NarSource } from "../metadata/metadata_store.ts";
import type { FileHash, NarHash } from "../nix/hash.ts";
import { compressionOf, hashOf, type NarName } from "../nix/nar_name.ts";
import type { NarBodySource } from "../upstream/upstream.ts";
import type { PassThroughDeps } from "./pass_through/pass_through.ts";
import type { NarAnswer, NarFacts } from "./nar/nar_answer.ts";
import { openPassThrough } from "./pass_through/open_pass_through.ts";

export interface ArchiveServerDeps {
  readonly documents: Pick<DocumentKeeper, "archivesOf">;
  /** By the upstream's URL. */
  readonly narSources: ReadonlyMap<string, Pick<NarBodySource, "statNar">>;
  readonly passThrough: PassThroughDeps;
}

/**
 * NAR files that no narinfo of ours names, but a debuginfo document does. No signature covers
 * them, so that they are not kept; that a file is the one of its name is checked by its hash.
 */
export class ArchiveServer {
  readonly #deps: ArchiveServerDeps;

  constructor(deps: ArchiveServerDeps) {
    this.#deps = deps;
  }

  /** `undefined` when no document leads to it, or no upstream of those that do has it now. */
  async open(narName: NarName, requestId: string): Promise<NarAnswer | undefined> {
    // Each by itself: what one says of the file's size must not count for another's.
    for (const source of await this.#deps.documents.archivesOf(narName)) {
      const answer = await this.#openFrom(source, narName, requestId).catch(() => undefined);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  async #openFrom(
    source: NarSource,
    narName: NarName,
    requestId: string,
  ): Promise<NarAnswer | undefined> {
    const facts = await this.#stat(narName, [source]);
    const nar = facts && rowOf(narName, facts.fileSize);
    if (nar === undefined) return undefined;
    const metadata = { ...NOTHING_KNOWN, sourcesOf: () => Promise.resolve([source]) };
    const { attempts, ...deps } = this.#deps.passThrough;
    const candidates = { ...attempts.candidates, metadata };
    const only = { ...deps, attempts: { ...attempts, candidates }, verifier: NO_VERIFIER };
    return await openPassThrough(only, nar, requestId);
  }

  /** Whether a document leads to it. */
  async isNamed(narName: NarName): Promise<boolean> {
    return (await this.#deps.documents.archivesOf(narName)).length > 0;
  }

  /** The same facts without its bytes: what HEAD tells. */
  async stat(narName: NarName): Promise<NarFacts | undefined> {
    return await this.#stat(narName, await this.#deps.documents.archivesOf(narName));
  }

  /** As the first upstream tells it that has the file: a document may name what it has not. */
  async #stat(
    narName: NarName,
    sources: readonly NarSource[],
  ): Promise<NarFacts | undefined> {
    const { narSources, passThrough: { attempts: { candidates: { pool } } } } = this.#deps;
    await pool.probeIfDown(sources.map(({ upstream }) => upstream));
    for (const { upstream, location } of sources) {
      if (pool.patience(upstream) === "none") continue;
      const found = await narSources.get(upstream)?.statNar(location).catch(() => undefined);
      if (found === undefined) continue;
      return { source: "MISS", fileSize: found.fileSize, tag: hashOf(narName) };
    }
    return undefined;
  }
}

/** Nobody knows the NAR hash of what no narinfo names. */
const NO_VERIFIER = {
  passThrough: () => ({
    write: () => Promise.resolve(),
    end() {},
    measure: new Promise<never>(() => undefined),
    [Symbol.dispose]() {},
  }),
};

/** What is not asked for, of a NAR without a narinfo. */
const NOTHING_KNOWN = {
  findNar: () => Promise.resolve(undefined),
  sourcesOf: (): Promise<readonly NarSource[]> => Promise.resolve([]),
  narinfosOf: () => Promise.resolve([]),
  apply: () => Promise.resolve(),
};

/**
 * The file hash decides alone where there is one: the NAR's hash and size are not looked at, but
 * for the size of an uncompressed file, which is its NAR's.
 */
function rowOf(name: NarName, fileSize: number | undefined): NarRow | undefined {
  const compression = compressionOf(name);
  if (fileSize === undefined && compression === "none") return undefined;
  return {
    name,
    compression,
    fileHash: hashOf(name) as FileHash,
    narHash: hashOf(name) as NarHash,
    narSize: fileSize ?? 0,
    ...(fileSize === undefined ? {} : { fileSize }),
  };
}
