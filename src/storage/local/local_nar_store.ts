import { Failure, messageOf } from "../../base/failure.ts";
import { NIX32_ALPHABET } from "../../nix/nix32.ts";
import { parseStoredName, type Seal, type StoredName } from "../../nix/stored_name.ts";
import type { NarStore, StoredNar } from "../nar_store.ts";
import { moveDurably } from "./durable_move.ts";
import { OpenNarFile } from "./open_nar_file.ts";
import { sealOf } from "./seal_of.ts";

/** How many leading characters of the hash name a subfolder: 1,024 folders. */
const SHARD_LENGTH = 2;

/** NAR files below one folder: `<folder>/<first two characters>/<stored name>`. */
export class LocalNarStore implements NarStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async open(at: StoredName): Promise<StoredNar | undefined> {
    try {
      return new OpenNarFile(Deno.openSync(this.#pathOf(at)));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw new Failure(
        "broken",
        `Cannot open NAR file: ${messageOf(error)}`,
        { nar: at },
        error,
      );
    }
  }

  async put(at: StoredName, path: string): Promise<Seal> {
    await Deno.mkdir(this.#shardOf(at), { recursive: true });
    await moveDurably(path, this.#pathOf(at));
    return sealOf(await Deno.stat(this.#pathOf(at)));
  }

  async remove(at: StoredName): Promise<boolean> {
    try {
      await Deno.remove(this.#pathOf(at));
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return false;
      throw error;
    }
  }

  async *list(): AsyncIterable<{ at: StoredName; fileSize: number }> {
    for await (const shard of entriesOf(this.#folder)) {
      for await (const entry of entriesOf(`${this.#folder}/${shard}`)) {
        const at = parseStoredName(entry);
        // One that goes meanwhile is not kept any more.
        const fileSize = at && sizeOf(this.#pathOf(at));
        if (at !== undefined && fileSize !== undefined) yield { at, fileSize };
      }
    }
  }

  /**
   * The NAR files of one shard (the leading characters of their names), with their sizes if asked
   * for: looking at each takes longer than listing all. Synchronous: for a Worker.
   */
  listShard(
    shard: string,
    sizes: boolean,
  ): readonly { readonly at: StoredName; readonly fileSize?: number }[] {
    const entries = namesIn(`${this.#folder}/${shard}`);
    const names = entries.flatMap((entry) => parseStoredName(entry) ?? []);
    if (!sizes) return names.map((at) => ({ at }));
    return names.flatMap((at) => {
      const fileSize = sizeOf(this.#pathOf(at));
      return fileSize === undefined ? [] : [{ at, fileSize }];
    });
  }

  #shardOf(at: StoredName): string {
    return `${this.#folder}/${at.slice(0, SHARD_LENGTH)}`;
  }

  #pathOf(at: StoredName): string {
    return `${this.#shardOf(at)}/${at}`;
  }
}

/** Every name that a shard can have. */
export function shards(): readonly string[] {
  const chars = [...NIX32_ALPHABET];
  return chars.flatMap((first) => chars.map((second) => first + second));
}

function namesIn(folder: string): readonly string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name);
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

function sizeOf(path: string): number | undefined {
  try {
    return Deno.statSync(path).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** A shard that no file needed yet is not an error; anything else is. */
function isAbsent(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory;
}

async function* entriesOf(folder: string): AsyncIterable<string> {
  try {
    for await (const entry of Deno.readDir(folder)) yield entry.name;
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}
