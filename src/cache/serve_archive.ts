import type { DocumentKeeper } from "../metadata/document_keeper.ts";
import type { NarRow, NarSource } from "../metadata/metadata_store.ts";
import type { FileHash, NarHash } from "../nix/hash.ts";
import { compressionOf, hashOf, type NarName } from "../nix/nar_name.ts";
import type { NarBodySource } from "../upstream/upstream.ts";
import type { Asker } from "./nar/asker.ts";
import type { NarAnswer, NarFacts } from "./nar/nar_answer.ts";
import { openPassThrough, type PassThroughDeps } from "./pass_through/pass_through.ts";

export interface ArchiveServerDeps {
  readonly documents: Pick<DocumentKeeper, "archivesOf">;
  /** Sources of NARs by the upstream's URL. */
  readonly narSources: ReadonlyMap<string, Pick<NarBodySource, "statNar">>;
  readonly passThrough: PassThroughDeps;
}

/**
 * Serves NAR files that a debuginfo document names, but no narinfo. No signature covers them, so
 * they are not stored; their file hash is verified.
 */
export class ArchiveServer {
  readonly #deps: ArchiveServerDeps;

  constructor(deps: ArchiveServerDeps) {
    this.#deps = deps;
  }

  /** `undefined` when no document names the file, or no upstream of such a document has it now. */
  async open(narName: NarName, asker: Asker): Promise<NarAnswer | undefined> {
    // One source at a time: the size at one source must not count for another.
    for (const source of await this.#deps.documents.archivesOf(narName)) {
      const answer = await this.#openFrom(source, narName, asker).catch(() => undefined);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  async #openFrom(
    source: NarSource,
    narName: NarName,
    asker: Asker,
  ): Promise<NarAnswer | undefined> {
    const facts = await this.#stat(narName, [source]);
    const nar = facts && rowOf(narName, facts.fileSize);
    if (nar === undefined) return undefined;
    const metadata = { ...NOTHING_KNOWN, sourcesOf: () => Promise.resolve([source]) };
    const { attempts, ...deps } = this.#deps.passThrough;
    const candidates = { ...attempts.candidates, metadata };
    const only = { ...deps, attempts: { ...attempts, candidates }, verifier: NO_VERIFIER };
    return await openPassThrough(only, nar, asker);
  }

  /** True where a document names the file. */
  async isNamed(narName: NarName): Promise<boolean> {
    return (await this.#deps.documents.archivesOf(narName)).length > 0;
  }

  /** The facts without the bytes, for HEAD. */
  async stat(narName: NarName): Promise<NarFacts | undefined> {
    return await this.#stat(narName, await this.#deps.documents.archivesOf(narName));
  }

  /** Facts from the first upstream that has the file: a document may name an absent one. */
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

/** A verifier that checks nothing: without a narinfo the NAR hash is unknown. */
const NO_VERIFIER = {
  passThrough: () => ({
    write: () => Promise.resolve(),
    end() {},
    measure: new Promise<never>(() => undefined),
    [Symbol.dispose]() {},
  }),
};

/** Values that a NAR without a narinfo does not need. */
const NOTHING_KNOWN = {
  findNar: () => Promise.resolve(undefined),
  sourcesOf: (): Promise<readonly NarSource[]> => Promise.resolve([]),
  narinfosOf: () => Promise.resolve([]),
  apply: () => Promise.resolve(),
};

/**
 * A row whose file hash alone decides: NAR hash and NAR size are unknown, except the size of an
 * uncompressed file.
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
