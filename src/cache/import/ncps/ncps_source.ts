import type { Bytes } from "../../../base/bytes.ts";
import { Failure, messageOf } from "../../../base/failure.ts";
import { streamOf } from "../../../base/stream_of.ts";
import { NEVER_USED_AT_MS, type PinRoot } from "../../../metadata/metadata_store.ts";
import { type Compression, COMPRESSIONS } from "../../../nix/compression.ts";
import type { Narinfo } from "../../../nix/narinfo.ts";
import { NARINFO_TEXT_MAX, parseNarinfo } from "../../../nix/narinfo_parse.ts";
import { isStorePathHash } from "../../../nix/store_path.ts";
import { decoded } from "../../verify/decoders.ts";
import { ForeignFile, type ForeignPlace, readForeignText } from "../foreign_file.ts";
import type { BrokenEntry, ImportSource, SourceEntry, SourceNar } from "../import_source.ts";
import { shardedPath } from "./ncps_folder.ts";
import type { NcpsContents, NcpsEntryRows, NcpsTables, Row } from "./ncps_tables.ts";

/** Extensions of NAR files, as ncps names them. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  "none": "",
  "": "",
  "xz": ".xz",
  "zstd": ".zst",
  "bzip2": ".bz2",
  "br": ".br",
};

/** The storage of an ncps, running or stopped. Chunks come joined. */
export class NcpsSource implements ImportSource {
  readonly #store: string;
  readonly #tables: NcpsTables;
  readonly #contents: NcpsContents;

  private constructor(store: string, tables: NcpsTables, contents: NcpsContents) {
    this.#store = store;
    this.#tables = tables;
    this.#contents = contents;
  }

  /** Takes the tables over. Rejects with a Failure where the database is unreadable. */
  static async open(
    store: string,
    tables: NcpsTables,
    signal: AbortSignal,
  ): Promise<NcpsSource> {
    try {
      return new NcpsSource(store, tables, await tables.contents(signal));
    } catch (error) {
      await tables[Symbol.asyncDispose]();
      throw error;
    }
  }

  get entryCount(): number {
    return this.#contents.ids.length;
  }

  /** The key that ncps signs with, in Nix's format; `undefined` where its database has none. */
  get secretKeyText(): string | undefined {
    return this.#contents.secretKey;
  }

  async *entries(signal: AbortSignal): AsyncGenerator<SourceEntry | BrokenEntry> {
    for (const id of this.#contents.ids) {
      if (signal.aborted) return;
      let rows: NcpsEntryRows | undefined;
      try {
        rows = await this.#tables.entry(id, signal);
        // ncps has evicted it meanwhile.
        if (rows !== undefined) yield await this.#entryOf(rows, signal);
      } catch (error) {
        const { store_path, hash } = rows?.narinfo ?? {};
        yield { name: String(store_path ?? hash ?? `narinfo ${id}`), problem: messageOf(error) };
      }
    }
  }

  pins(): readonly PinRoot[] {
    return this.#contents.pins.flatMap(({ hash, created_at }) => {
      const storePathHash = String(hash);
      const pinnedAtMs = ncpsTime(created_at) ?? NEVER_USED_AT_MS;
      return isStorePathHash(storePathHash) ? [{ storePathHash, pinnedAtMs }] : [];
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tables[Symbol.asyncDispose]();
  }

  async #entryOf(rows: NcpsEntryRows, signal: AbortSignal): Promise<SourceEntry> {
    const { narinfo, file, chunks } = rows;
    if (file === undefined) throw new Failure("absent", "ncps has no NAR file of it");
    const times = [narinfo["last_accessed_at"], file["last_accessed_at"], narinfo["created_at"]];
    const usedAtMs = Math.max(NEVER_USED_AT_MS, ...times.map((time) => ncpsTime(time) ?? 0));
    const parsed = await this.#narinfoOf(rows, file, signal);
    return { narinfo: parsed, usedAtMs, nar: this.#narOf(file, chunks) };
  }

  async #narinfoOf(
    { narinfo, references, signatures }: NcpsEntryRows,
    file: Row,
    signal: AbortSignal,
  ): Promise<Narinfo> {
    // Releases before the tables had narinfos wrote files.
    if (narinfo["store_path"] === null) {
      const place = this.#placeOf("narinfo", `${narinfo["hash"]}.narinfo`);
      return parseNarinfo(await readForeignText(place, NARINFO_TEXT_MAX, signal));
    }
    return ncpsNarinfo({
      columns: narinfo as unknown as NcpsNarinfoColumns,
      references,
      signatures,
      compression: String(file["compression"] || "none"),
    });
  }

  #narOf(file: Row, chunks: readonly Row[]): SourceNar {
    const compression = String(file["compression"]);
    const extension = EXTENSIONS[compression];
    if (extension === undefined) {
      throw new Failure("corrupt", `Cannot decode ${compression}, the compression of its NAR`);
    }
    if (Number(file["total_chunks"] ?? 0) > 0) return this.#chunked(file, chunks);
    return { kind: "file", ...this.#placeOf("nar", `${file["hash"]}.nar${extension}`) };
  }

  #placeOf(kind: string, name: string): ForeignPlace {
    return { folder: this.#store, path: shardedPath(`${this.#store}/${kind}`, name) };
  }

  #chunked(file: Row, all: readonly Row[]): SourceNar {
    const count = Number(file["total_chunks"]);
    if (all.length !== count) {
      throw new Failure("absent", `ncps has ${all.length} of the ${count} chunks of its NAR`);
    }
    const fileSize = all.reduce((sum, { size }) => sum + Number(size), 0);
    const open = (signal: AbortSignal) => Promise.resolve(streamOf(this.#joined(all, signal)));
    return { kind: "stream", fileSize, open };
  }

  async *#joined(chunks: readonly Row[], signal: AbortSignal): AsyncGenerator<Bytes> {
    for (const { hash, size } of chunks) {
      const place = this.#placeOf("chunk", String(hash));
      try {
        await using file = await ForeignFile.open(place, signal);
        const decoding = { compression: "zstd", narSizeMax: Number(size) } as const;
        let leftBytes = decoding.narSizeMax;
        for await (const piece of decoded(streamOf(file.pieces(signal)), decoding)) {
          leftBytes -= piece.length;
          if (leftBytes < 0) throw new Error("it holds more bytes than its row says");
          yield new Uint8Array(piece);
        }
      } catch (error) {
        const message = `Cannot read chunk ${place.path}: ${messageOf(error)}`;
        throw new Failure("absent", message, {}, error);
      }
    }
  }
}

/** Columns of a narinfo of ncps. */
interface NcpsNarinfoColumns {
  readonly store_path: string;
  readonly compression: string | null;
  readonly file_hash: string | null;
  readonly file_size: bigint | null;
  readonly nar_hash: string;
  readonly nar_size: bigint;
  readonly deriver: string | null;
  readonly system: string | null;
  readonly ca: string | null;
}

interface NcpsNarinfoParts {
  readonly columns: NcpsNarinfoColumns;
  readonly references: readonly string[];
  readonly signatures: readonly string[];
  /** Compression of ncps's present file: ncps may have joined or cut the narinfo's file. */
  readonly compression: string;
}

/** The narinfo that ncps would serve. Throws a Failure where it is none. */
function ncpsNarinfo(parts: NcpsNarinfoParts): Narinfo {
  const { columns, references, signatures, compression } = parts;
  const { store_path, file_hash, file_size, deriver, system, ca } = columns;
  const isSameFile = (columns.compression || "none") === compression;
  const extension = Object.hasOwn(COMPRESSIONS, compression)
    ? COMPRESSIONS[compression as Compression].extension
    : "";
  const lines: readonly (readonly [key: string, value: string | bigint | null | undefined])[] = [
    ["StorePath", store_path],
    // Every import replaces it.
    ["URL", `nar/ncps.nar${extension}`],
    ["Compression", compression],
    ["FileHash", isSameFile ? file_hash : undefined],
    ["FileSize", isSameFile ? file_size : undefined],
    ["NarHash", columns.nar_hash],
    ["NarSize", columns.nar_size],
    ["References", references.join(" ")],
    ["Deriver", deriver || undefined],
    ["System", system || undefined],
    ...signatures.map((signature) => ["Sig", signature] as const),
    ["CA", ca || undefined],
  ];
  const text = lines.filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => `${key}: ${value}\n`);
  return parseNarinfo(text.join(""));
}

/** A date and time as ncps writes them, in milliseconds; `undefined` for any other text. */
function ncpsTime(text: unknown): number | undefined {
  const parts = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,3})?\d*\s?(Z|[+-]\d\d:?\d\d)?/
    .exec(String(text ?? ""));
  if (parts === null) return undefined;
  const [, date, time, fraction = "", zone = "Z"] = parts;
  const ms = Date.parse(`${date}T${time}${fraction}${zone.replace(/(\d\d)(\d\d)$/, "$1:$2")}`);
  return Number.isNaN(ms) ? undefined : ms;
}
