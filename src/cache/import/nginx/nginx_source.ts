import { Failure, messageOf, reasonOf } from "../../../base/failure.ts";
import { readFully } from "../../../base/files.ts";
import type { PinRoot } from "../../../metadata/metadata_store.ts";
import type { Compression } from "../../../nix/compression.ts";
import { NARINFO_TEXT_MAX, parseNarinfo } from "../../../nix/narinfo_parse.ts";
import { decoded } from "../../verify/decoders.ts";
import type { BrokenEntry, ImportSource, SourceEntry, SourceNar } from "../import_source.ts";
import { type CachedResponse, HEAD_BYTES_MAX, readCachedResponse } from "./cached_response.ts";

/** Suffix of a cache key, after scheme, host and prefix. */
const NARINFO_REGEXP = /(?:^|\/)([0-9abcdfghijklmnpqrsvwxyz]{32})\.narinfo$/;

/** nginx's name of a file. A file under another name is growing. */
const NAME_REGEXP = /^[0-9a-f]{32}$/;

/** Encodings of stored narinfos: those that a client of nginx accepts. */
const ENCODINGS: Readonly<Record<string, Compression>> = {
  "identity": "none",
  "gzip": "gzip",
  "br": "br",
  "zstd": "zstd",
};

interface EntryPlace {
  readonly path: string;
  readonly bodyStart: number;
  readonly encoding: string;
}

/** The files of nginx's `proxy_cache`, by their keys. */
export class NginxSource implements ImportSource {
  readonly #narinfos = new Map<string, EntryPlace>();
  /** NAR files by the last segment of the key, with its query; no two NARs share it. */
  readonly #nars = new Map<string, EntryPlace>();

  /** Reads the head of every file. Throws a Failure for an unreadable folder. */
  constructor(folder: string) {
    try {
      for (const path of filesBelow(folder)) this.#add(path);
    } catch (error) {
      throw new Failure("broken", `Cannot import ${folder}: ${reasonOf(error)}`, {}, error);
    }
    if (this.#narinfos.size === 0) {
      const expected = "give the folder of proxy_cache_path";
      throw new Failure(
        "broken",
        `Cannot import ${folder}: nginx has no narinfo there; ${expected}`,
      );
    }
  }

  get entryCount(): number {
    return this.#narinfos.size;
  }

  async *entries(signal: AbortSignal): AsyncGenerator<SourceEntry | BrokenEntry> {
    for (const [storePathHash, place] of this.#narinfos) {
      if (signal.aborted) return;
      try {
        yield await this.#entryOf(place);
      } catch (error) {
        yield { name: storePathHash, problem: messageOf(error) };
      }
    }
  }

  pins(): readonly PinRoot[] {
    return [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // It holds nothing open.
  }

  #add(path: string): void {
    const response = headOf(path);
    if (response?.status !== 200) return;
    const { key, bodyStart, headers } = response;
    const place = { path, bodyStart, encoding: headers.get("content-encoding") ?? "identity" };
    const storePathHash = NARINFO_REGEXP.exec(key)?.[1];
    if (storePathHash !== undefined) return void this.#narinfos.set(storePathHash, place);
    const isPlain = place.encoding === "identity";
    if (isPlain && key.includes(".nar")) this.#nars.set(lastSegment(key), place);
  }

  async #entryOf(place: EntryPlace): Promise<SourceEntry> {
    const narinfo = parseNarinfo(await textOf(place));
    const nar = this.#nars.get(lastSegment(narinfo.url));
    if (nar === undefined) throw new Failure("absent", `nginx does not have ${narinfo.storePath}`);
    const { mtime } = await Deno.stat(place.path);
    return { narinfo, usedAtMs: mtime?.getTime() ?? 0, nar: narOf(nar) };
  }
}

function narOf({ path, bodyStart }: EntryPlace): SourceNar {
  const fileSize = Math.max(0, Deno.statSync(path).size - bodyStart);
  return {
    kind: "stream",
    fileSize,
    open: async () => await bodyOf({ path, bodyStart }),
  };
}

async function bodyOf({ path, bodyStart }: Pick<EntryPlace, "path" | "bodyStart">) {
  const file = await Deno.open(path);
  await file.seek(bodyStart, Deno.SeekMode.Start);
  return file.readable;
}

async function textOf({ encoding, ...place }: EntryPlace): Promise<string> {
  const compression = ENCODINGS[encoding];
  if (compression === undefined) {
    throw new Failure("corrupt", `Cannot read narinfo: its Content-Encoding is ${encoding}`);
  }
  const decoder = new TextDecoder();
  let text = "";
  const decoding = { compression, narSizeMax: NARINFO_TEXT_MAX };
  for await (const piece of decoded(await bodyOf(place), decoding)) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > NARINFO_TEXT_MAX) {
      throw new Failure("corrupt", "Cannot read narinfo: too long");
    }
  }
  return text + decoder.decode();
}

function headOf(path: string): CachedResponse | undefined {
  try {
    using file = Deno.openSync(path);
    const bytes = new Uint8Array(Math.min(HEAD_BYTES_MAX, file.statSync().size));
    return readCachedResponse(bytes.subarray(0, readFully(file, bytes)));
  } catch (error) {
    // nginx has removed it meanwhile.
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function* filesBelow(folder: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    const path = `${folder}/${name}`;
    if (isDirectory) yield* filesBelow(path);
    else if (NAME_REGEXP.test(name)) yield path;
  }
}

function lastSegment(location: string): string {
  return location.slice(location.lastIndexOf("/") + 1);
}
