import type { Bytes } from "../../../base/bytes.ts";
import { Failure, messageOf, reasonOf } from "../../../base/failure.ts";
import { streamOf } from "../../../base/stream_of.ts";
import type { PinRoot } from "../../../metadata/metadata_store.ts";
import type { Compression } from "../../../nix/compression.ts";
import { NARINFO_TEXT_MAX, parseNarinfo } from "../../../nix/narinfo_parse.ts";
import { decoded } from "../../verify/decoders.ts";
import { ForeignFile, type ForeignPlace } from "../foreign_file.ts";
import type { BrokenEntry, ImportSource, SourceEntry, SourceNar } from "../import_source.ts";

/** Suffix of a cache key, after scheme, host and prefix. */
const NARINFO_REGEXP = /(?:^|\/)([0-9abcdfghijklmnpqrsvwxyz]{32})\.narinfo$/;

/** nginx's name of a file. A file under another name is growing. */
const NAME_REGEXP = /^[0-9a-f]{32}$/;

/** Encodings of stored narinfos: those that a client of nginx accepts. */
const ENCODINGS: ReadonlyMap<string, Compression> = new Map([
  ["identity", "none"],
  ["gzip", "gzip"],
  ["br", "br"],
  ["zstd", "zstd"],
]);

/** nginx nests its folders at most three deep. */
const FOLDERS_DEEP_MAX = 3;

/** More files are no cache of Nix paths: their names alone would fill the memory. */
const FILES_MAX = 2_000_000;

/** The longest name of a NAR file, with its query. */
const NAR_NAME_MAX = 512;

interface EntryPlace extends ForeignPlace {
  readonly bodyStart: number;
  /** `undefined`: larder cannot decode it. */
  readonly encoding: Compression | undefined;
}

/** The files of nginx's `proxy_cache`, by their keys. */
export class NginxSource implements ImportSource {
  readonly #narinfos = new Map<string, EntryPlace>();
  /** NAR files by the last segment of the key, with its query; no two NARs share it. */
  readonly #nars = new Map<string, EntryPlace>();

  readonly #folder: string;
  /** Files that are no regular ones, with the reason. */
  readonly #unreadable: BrokenEntry[] = [];

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reads the head of every file. Rejects with a Failure for an unreadable folder. */
  static async open(folder: string, signal: AbortSignal): Promise<NginxSource> {
    const source = new NginxSource(folder);
    await source.#readHeads(signal);
    return source;
  }

  async #readHeads(signal: AbortSignal): Promise<void> {
    const folder = this.#folder;
    let files = 0;
    try {
      for await (const path of filesBelow(folder)) {
        signal.throwIfAborted();
        if (++files > FILES_MAX) throw new Error(`it has more than ${FILES_MAX} files`);
        await this.#add({ folder, path }, signal);
      }
    } catch (error) {
      if (signal.aborted) throw error;
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
    return this.#narinfos.size + this.#unreadable.length;
  }

  async *entries(signal: AbortSignal): AsyncGenerator<SourceEntry | BrokenEntry> {
    yield* this.#unreadable;
    for (const [storePathHash, place] of this.#narinfos) {
      if (signal.aborted) return;
      try {
        yield await this.#entryOf(place, signal);
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

  async #add(place: ForeignPlace, signal: AbortSignal): Promise<void> {
    let response: CachedResponse | undefined;
    try {
      response = await headOf(place, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      this.#unreadable.push({ name: place.path, problem: messageOf(error) });
    }
    if (response?.status !== 200) return;
    const { key, bodyStart, headers } = response;
    const encoding = ENCODINGS.get(headers.get("content-encoding") ?? "identity");
    const entry = { ...place, bodyStart, encoding };
    const storePathHash = NARINFO_REGEXP.exec(key)?.[1];
    if (storePathHash !== undefined) return void this.#narinfos.set(copyOf(storePathHash), entry);
    const name = lastSegment(key);
    const isNar = encoding === "none" && key.includes(".nar") && name.length <= NAR_NAME_MAX;
    if (isNar) this.#nars.set(copyOf(name), entry);
  }

  async #entryOf(place: EntryPlace, signal: AbortSignal): Promise<SourceEntry> {
    const { text, changedAtMs } = await narinfoIn(place, signal);
    const narinfo = parseNarinfo(text);
    const nar = this.#nars.get(lastSegment(narinfo.url));
    if (nar === undefined) throw new Failure("absent", `nginx does not have ${narinfo.storePath}`);
    return { narinfo, usedAtMs: changedAtMs, nar: await narOf(nar, signal) };
  }
}

async function narOf(place: EntryPlace, signal: AbortSignal): Promise<SourceNar> {
  const { bodyStart } = place;
  await using file = await ForeignFile.open(place, signal);
  return {
    kind: "stream",
    fileSize: Math.max(0, file.fileSize - bodyStart),
    open: (signal) => Promise.resolve(streamOf(bodyOf(place, signal))),
  };
}

/** The bytes behind the headers. */
async function* bodyOf(place: EntryPlace, signal: AbortSignal): AsyncGenerator<Bytes, void> {
  await using file = await ForeignFile.open(place, signal);
  yield* file.pieces(signal, place.bodyStart);
}

async function narinfoIn(place: EntryPlace, signal: AbortSignal) {
  const { encoding: compression, bodyStart } = place;
  if (compression === undefined) {
    throw new Failure("corrupt", "Cannot read narinfo: its Content-Encoding is an unknown one");
  }
  await using file = await ForeignFile.open(place, signal);
  const { changedAtMs } = file;
  const decoder = new TextDecoder();
  let text = "";
  const decoding = { compression, narSizeMax: NARINFO_TEXT_MAX };
  const body = streamOf(file.pieces(signal, bodyStart));
  for await (const piece of decoded(body, decoding)) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > NARINFO_TEXT_MAX) {
      throw new Failure("corrupt", "Cannot read narinfo: too long");
    }
  }
  return { text: text + decoder.decode(), changedAtMs };
}

/** `undefined` for a file that nginx has removed meanwhile, and for one of something else. */
async function headOf(
  place: ForeignPlace,
  signal: AbortSignal,
): Promise<CachedResponse | undefined> {
  try {
    await using file = await ForeignFile.open(place, signal);
    return readCachedResponse(await file.head(HEAD_BYTES_MAX, signal));
  } catch (error) {
    if (error instanceof Failure && error.cause instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

async function* filesBelow(folder: string, deep = 0): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`;
    if (!isDirectory && NAME_REGEXP.test(name)) yield path;
    else if (isDirectory && deep < FOLDERS_DEEP_MAX) yield* filesBelow(path, deep + 1);
  }
}

function lastSegment(location: string): string {
  return location.slice(location.lastIndexOf("/") + 1);
}

/** The same text, which keeps no longer one in memory. */
function copyOf(part: string): string {
  return new TextDecoder().decode(new TextEncoder().encode(part));
}

/** A response as nginx keeps it in a file of `proxy_cache`. */
interface CachedResponse {
  /** `proxy_cache_key`, as it was for the request. */
  readonly key: string;
  readonly status: number;
  /** Lower case; the last of several equal names. */
  readonly headers: ReadonlyMap<string, string>;
  /** Offset of the body in the file. */
  readonly bodyStart: number;
}

/** The part of a file that has the key and the headers: nginx writes it from one buffer. */
const HEAD_BYTES_MAX = 64 * 1024;

/** Mark of the key behind nginx's own record, whose size differs from platform to platform. */
const KEY_MARK = "\nKEY: ";
const STATUS_REGEXP = /^HTTP\/1\.[01] (\d{3})(?: |$)/;

/** Reads the first bytes of a file. `undefined` for anything but a file of `proxy_cache`. */
export function readCachedResponse(head: Uint8Array): CachedResponse | undefined {
  // One character for each byte, so that positions are those of the file.
  const text = new TextDecoder("latin1").decode(head);
  const keyStart = text.indexOf(KEY_MARK);
  const keyEnd = text.indexOf("\n", keyStart + KEY_MARK.length);
  const headersEnd = text.indexOf("\r\n\r\n", keyEnd);
  if (keyStart < 0 || keyEnd < 0 || headersEnd < 0) return undefined;
  const [statusLine = "", ...lines] = text.slice(keyEnd + 1, headersEnd).split("\r\n");
  const status = STATUS_REGEXP.exec(statusLine)?.[1];
  if (status === undefined) return undefined;
  return {
    key: text.slice(keyStart + KEY_MARK.length, keyEnd),
    status: Number(status),
    headers: new Map(lines.flatMap(headerOf)),
    bodyStart: headersEnd + "\r\n\r\n".length,
  };
}

function headerOf(line: string): readonly (readonly [string, string])[] {
  const colon = line.indexOf(":");
  return colon < 1 ? [] : [[line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]];
}
