import {
  type DatabasePlace,
  type MetadataBackEnd,
  readMetadata,
} from "../../src/app/back_ends/metadata_back_end.ts";
import { parseNarName } from "../../src/nix/nar_name.ts";
import { isStorePathHash } from "../../src/nix/store_path.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

const SILENT = createLogger("error", { write() {} });

/** The paths that the larders of a cluster have, by their database. */
export class KeptPaths implements AsyncDisposable {
  readonly #metadata: MetadataBackEnd;

  private constructor(metadata: MetadataBackEnd) {
    this.#metadata = metadata;
  }

  static async open(place: DatabasePlace): Promise<KeptPaths> {
    return new KeptPaths(await readMetadata(place, SILENT));
  }

  /** Whether they have a narinfo or NAR now. False while the database does not answer. */
  async has(path: string): Promise<boolean> {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const narName = parseNarName(name);
    const storePathHash = name.replace(/\.narinfo$/, "");
    try {
      if (narName !== undefined) {
        return (await this.#metadata.findNar(narName, { fresh: true }))?.kept !== undefined;
      }
      return isStorePathHash(storePathHash) &&
        await this.#metadata.findNarinfo(storePathHash) !== undefined;
    } catch {
      return false;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#metadata[Symbol.asyncDispose]();
  }
}
