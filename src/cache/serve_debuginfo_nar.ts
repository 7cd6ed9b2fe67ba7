import { Failure } from "../base/failure.ts";
import type { DocumentKeeper } from "../metadata/document_keeper.ts";
import type { NarRow, NarSource } from "../metadata/metadata_store.ts";
import type { FileHash, NarHash } from "../nix/hash.ts";
import { compressionOf, hashOf, type NarName } from "../nix/nar_name.ts";
import type { Requester } from "./nar/requester.ts";
import type { NarAnswer, NarFacts } from "./nar/nar_answer.ts";
import { openPassThrough, type PassThroughDeps } from "./pass_through/pass_through.ts";
import { statNar, type StatNarDeps } from "./sources/stat_nar.ts";

export interface DebuginfoNarServerDeps {
  readonly documents: Pick<DocumentKeeper, "debuginfoSourcesOf">;
  readonly sizes: StatNarDeps;
  readonly passThrough: PassThroughDeps;
}

/**
 * Serves NAR files that a debuginfo document names, but no narinfo. No signature covers them, so
 * larder verifies their file hash, and does not store them.
 */
export class DebuginfoNarServer {
  readonly #deps: DebuginfoNarServerDeps;

  constructor(deps: DebuginfoNarServerDeps) {
    this.#deps = deps;
  }

  /** `undefined` when no document names the file, or no upstream of such a document has it now. */
  async open(narName: NarName, requester: Requester): Promise<NarAnswer | undefined> {
    // No narinfo says the size. That of one upstream must not count for another, so each has a
    // transfer of its own, one after the other.
    for (const source of await this.#deps.documents.debuginfoSourcesOf(narName)) {
      const answer = await this.#openFrom(source, narName, requester).catch(ifFailed);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  async #openFrom(
    source: NarSource,
    narName: NarName,
    requester: Requester,
  ): Promise<NarAnswer | undefined> {
    const facts = await this.#stat(narName, [source], requester.requestId);
    if (facts === undefined) return undefined;
    const nar = rowOf(narName, facts.fileSize);
    if (nar.compression === "none" && nar.fileSize === undefined) return undefined;
    const { attempts, ...deps } = this.#deps.passThrough;
    const candidates = { ...attempts.candidates, metadata: knowing([source]) };
    const only = { ...deps, attempts: { ...attempts, candidates }, verifier: NO_VERIFIER };
    return await openPassThrough(only, nar, requester);
  }

  /** True where a document names the file. */
  async isNamed(narName: NarName): Promise<boolean> {
    return (await this.#deps.documents.debuginfoSourcesOf(narName)).length > 0;
  }

  /** The facts without the bytes, for HEAD. */
  async stat(narName: NarName, requestId: string): Promise<NarFacts | undefined> {
    return await this.#stat(
      narName,
      await this.#deps.documents.debuginfoSourcesOf(narName),
      requestId,
    );
  }

  /** Facts from the first upstream that has the file: a document may name an absent one. */
  async #stat(
    narName: NarName,
    sources: readonly NarSource[],
    requestId: string,
  ): Promise<NarFacts | undefined> {
    if (sources.length === 0) return undefined;
    const { sizes } = this.#deps;
    const candidates = { ...sizes.candidates, metadata: knowing(sources) };
    const found = await statNar({ ...sizes, candidates }, rowOf(narName), requestId);
    return found && { cacheResult: "MISS", fileSize: found.fileSize, tag: hashOf(narName) };
  }
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

/**
 * A row whose file hash alone decides: NAR hash and NAR size are unknown, except the size of an
 * uncompressed file.
 */
function rowOf(name: NarName, fileSize?: number): NarRow {
  return {
    name,
    compression: compressionOf(name),
    fileHash: hashOf(name) as FileHash,
    narHash: hashOf(name) as NarHash,
    narSize: fileSize ?? 0,
    ...(fileSize === undefined ? {} : { fileSize }),
  };
}
