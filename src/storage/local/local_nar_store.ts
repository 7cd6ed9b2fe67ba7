import { Failure, messageOf } from "../../base/failure.ts";
import { type NarName, parseNarName } from "../../nix/nar_name.ts";
import type { NarStore, StoredNar } from "../nar_store.ts";
import { moveDurably } from "./durable_move.ts";
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

  async publish(name: NarName, path: string): Promise<void> {
    await Deno.mkdir(this.#shardOf(name), { recursive: true });
    await moveDurably(path, this.#pathOf(name));
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
        if (name === undefined) continue;
        const { size } = await Deno.stat(this.#pathOf(name));
        yield { name, fileSize: size };
      }
    }
  }

  #shardOf(name: NarName): string {
    return `${this.#folder}/${name.slice(0, SHARD_LENGTH)}`;
  }

  #pathOf(name: NarName): string {
    return `${this.#shardOf(name)}/${name}`;
  }
}

async function* entriesOf(folder: string): AsyncIterable<string> {
  try {
    for await (const entry of Deno.readDir(folder)) yield entry.name;
  } catch (error) {
    // A shard that no file needed yet is not an error; anything else is.
    if (!(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory)) {
      throw error;
    }
  }
}
