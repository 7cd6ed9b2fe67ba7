import { Failure } from "../../base/failure.ts";
import { type Derivation, parseDerivation } from "../../nix/derivation.ts";
import {
  hashOfBaseName,
  nameOfBaseName,
  parseStorePath,
  type StorePathHash,
} from "../../nix/store_path.ts";
import type { RunNix } from "./installables.ts";

const CAT = ["--extra-experimental-features", "nix-command", "store", "cat"] as const;

/** A store path that a plan begins with. */
export interface PlanRoot {
  readonly storePathHash: StorePathHash;
  readonly name?: string | undefined;
  /** The store path of the `.drv` that builds it. */
  readonly derivation?: string | undefined;
}

/** Where the files are. */
export interface DerivationSources {
  /** Throws for a file that cannot be read. */
  readonly readTextFile: (path: string) => string;
  readonly nix: RunNix;
}

/** Reads `.drv` files of this machine's Nix store, each once. */
export class Derivations {
  readonly #sources: DerivationSources;
  readonly #read = new Map<string, Promise<Derivation>>();

  constructor(sources: DerivationSources) {
    this.#sources = sources;
  }

  /** Throws a sentence for one that cannot be read. */
  read(path: string): Promise<Derivation> {
    let derivation = this.#read.get(path);
    if (derivation === undefined) this.#read.set(path, derivation = this.#readOnce(path));
    return derivation;
  }

  /** The roots of a plan for these outputs; "all" of them. */
  async roots(path: string, names: readonly string[] | "all"): Promise<readonly PlanRoot[]> {
    return (await this.#outputPaths(path, names)).map((output) => {
      const baseName = parseStorePath(output);
      const storePathHash = hashOfBaseName(baseName);
      return { storePathHash, name: nameOfBaseName(baseName), derivation: path };
    });
  }

  /** The store paths of these outputs; "all" of them. Throws a sentence for an unknown one. */
  async #outputPaths(path: string, names: readonly string[] | "all"): Promise<readonly string[]> {
    const { outputs } = await this.read(path);
    return (names === "all" ? [...outputs.keys()] : names).map((name) => {
      const output = outputs.get(name);
      if (output === undefined) {
        const known = [...outputs.keys()].join(", ");
        throw new Failure(
          "bad-request",
          `Cannot plan ${path}: it has no output ${name}, but ${known}`,
        );
      }
      if (output !== "") return output;
      const why = "Nix knows the paths of its outputs only once it has built them";
      throw new Failure("bad-request", `Cannot plan ${path}: ${why}`);
    });
  }

  async #readOnce(path: string): Promise<Derivation> {
    return parseDerivation(this.#readFile(path) ?? await this.#readByNix(path));
  }

  /** `undefined` if the file is not here: Nix may have its store elsewhere. */
  #readFile(path: string): string | undefined {
    try {
      return this.#sources.readTextFile(path);
    } catch {
      return undefined;
    }
  }

  async #readByNix(path: string): Promise<string> {
    const outcome = await this.#sources.nix([...CAT, "--", path]);
    if (outcome?.isSuccess === true) return outcome.output;
    const why = outcome === undefined ? "; there is no nix to ask for it" : "";
    throw new Failure(
      "bad-request",
      `Cannot read ${path}: it is not in this machine's store${why}`,
    );
  }
}
