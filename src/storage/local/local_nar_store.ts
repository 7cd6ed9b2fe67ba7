import { Failure, messageOf } from "../../base/failure.ts";
import { NIX32_ALPHABET } from "../../nix/nix32.ts";
import { type NarName, parseNarName } from "../../nix/nar_name.ts";
import type { FileIdentity, NarStore, StoredNar } from "../nar_store.ts";
import { moveDurably } from "./durable_move.ts";
import { identityOf } from "./file_identity.ts";
import { OpenNarFile } from "./open_nar_file.ts";

/** How many leading characters of the hash name a subfolder: 1,024 folders. */
const SHARD_LENGTH = 2;

/** NAR files below one folder: `<folder>/<first two characters>/<NAR name>`. */
export class LocalNarStore implements NarStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async open(name: NarName): Promise<StoredNar | undefined> {
    try {
      return new OpenNarFile(Deno.openSync(this.#pathOf(name)));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw new Failure(
        "broken",
        `Cannot open NAR file: ${messageOf(error)}`,
        { nar: name },
        error,
      );
    }
  }

  async publish(name: NarName, path: string): Promise<FileIdentity> {
    await Deno.mkdir(this.#shardOf(name), { recursive: true });
    await moveDurably(path, this.#pathOf(name));
    return identityOf(await Deno.stat(this.#pathOf(name)));
  }

  async remove(name: NarName): Promise<boolean> {
    try {
      await Deno.remove(this.#pathOf(name));
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return false;
      throw error;
    }
  }

  async *list(): AsyncIterable<{ name: NarName; fileSize: number }> {
    for await (const shard of entriesOf(this.#folder)) {
      for await (const entry of entriesOf(`${this.#folder}/${shard}`)) {
        const name = parseNarName(entry);
        // One that goes meanwhile is not kept any more.
        const fileSize = name && sizeOf(this.#pathOf(name));
        if (name !== undefined && fileSize !== undefined) yield { name, fileSize };
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
  ): readonly { readonly name: NarName; readonly fileSize?: number }[] {
    const names = namesIn(`${this.#folder}/${shard}`).flatMap((entry) => parseNarName(entry) ?? []);
    if (!sizes) return names.map((name) => ({ name }));
    return names.flatMap((name) => {
      const fileSize = sizeOf(this.#pathOf(name));
      return fileSize === undefined ? [] : [{ name, fileSize }];
    });
  }

  #shardOf(name: NarName): string {
    return `${this.#folder}/${name.slice(0, SHARD_LENGTH)}`;
  }

  #pathOf(name: NarName): string {
    return `${this.#shardOf(name)}/${name}`;
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
