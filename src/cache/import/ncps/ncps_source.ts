import type { Bytes } from "../../../base/bytes.ts";
import { Failure, messageOf } from "../../../base/failure.ts";
import { streamOf } from "../../../base/stream_of.ts";
import type { PinRoot } from "../../../metadata/metadata_store.ts";
import { NEVER_USED_AT_MS } from "../../../metadata/metadata_store.ts";
import { parseNarinfo } from "../../../nix/narinfo_parse.ts";
import { isStorePathHash } from "../../../nix/store_path.ts";
import { decoded } from "../../verify/decoders.ts";
import type { BrokenEntry, ImportSource, SourceEntry, SourceNar } from "../import_source.ts";
import { NcpsDatabase, type Row } from "./ncps_database.ts";
import { type NcpsPlaces, shardedPath } from "./ncps_folder.ts";
import { ncpsNarinfo, type NcpsNarinfoColumns, ncpsTime } from "./ncps_narinfo.ts";

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
  readonly #database: NcpsDatabase;
  readonly #ids: readonly number[];

  /** Throws a Failure where the database is unreadable. */
  constructor({ store, databasePath }: NcpsPlaces) {
    this.#store = store;
    this.#database = NcpsDatabase.open(databasePath);
    this.#ids = this.#database.ids();
  }

  get entryCount(): number {
    return this.#ids.length;
  }

  /** The key that ncps signs with, in Nix's format; `undefined` where its database has none. */
  get secretKeyText(): string | undefined {
    return this.#database.secretKey();
  }

  async *entries(signal: AbortSignal): AsyncGenerator<SourceEntry | BrokenEntry> {
    for (const id of this.#ids) {
      if (signal.aborted) return;
      const row = this.#database.narinfo(id);
      // ncps has evicted it meanwhile.
      if (row === undefined) continue;
      try {
        yield this.#entryOf(id, row);
      } catch (error) {
        yield { name: String(row["store_path"] ?? row["hash"]), problem: messageOf(error) };
      }
    }
  }

  pins(): readonly PinRoot[] {
    return this.#database.pins().flatMap(({ hash, created_at }) => {
      const storePathHash = String(hash);
      const pinnedAtMs = ncpsTime(created_at) ?? NEVER_USED_AT_MS;
      return isStorePathHash(storePathHash) ? [{ storePathHash, pinnedAtMs }] : [];
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#database[Symbol.dispose]();
  }

  #entryOf(id: number, row: Row): SourceEntry {
    const [file] = this.#database.narFiles(id);
    if (file === undefined) throw new Failure("absent", "ncps has no NAR file of it");
    const times = [row["last_accessed_at"], file["last_accessed_at"], row["created_at"]];
    const usedAtMs = Math.max(NEVER_USED_AT_MS, ...times.map((time) => ncpsTime(time) ?? 0));
    return { narinfo: this.#narinfoOf(id, row, file), usedAtMs, nar: this.#narOf(file) };
  }

  #narinfoOf(id: number, row: Row, file: Row) {
    // Releases before the tables had narinfos wrote files.
    if (row["store_path"] === null) {
      const name = `${row["hash"]}.narinfo`;
      return parseNarinfo(Deno.readTextFileSync(shardedPath(`${this.#store}/narinfo`, name)));
    }
    return ncpsNarinfo({
      columns: row as unknown as NcpsNarinfoColumns,
      references: this.#database.references(id),
      signatures: this.#database.signatures(id),
      compression: String(file["compression"] || "none"),
    });
  }

  #narOf(file: Row): SourceNar {
    const compression = String(file["compression"]);
    const extension = EXTENSIONS[compression];
    if (extension === undefined) {
      throw new Failure("corrupt", `Cannot decode ${compression}, the compression of its NAR`);
    }
    if (Number(file["total_chunks"] ?? 0) > 0) return this.#chunked(file);
    const name = `${file["hash"]}.nar${extension}`;
    return { kind: "file", path: shardedPath(`${this.#store}/nar`, name) };
  }

  #chunked(file: Row): SourceNar {
    const all = this.#database.chunks(Number(file["id"]));
    const count = Number(file["total_chunks"]);
    if (all.length !== count) {
      throw new Failure("absent", `ncps has ${all.length} of the ${count} chunks of its NAR`);
    }
    const fileSize = all.reduce((sum, { size }) => sum + Number(size), 0);
    const open = () => Promise.resolve(streamOf(this.#joined(all)));
    return { kind: "stream", fileSize, open };
  }

  async *#joined(chunks: readonly Row[]): AsyncGenerator<Bytes> {
    for (const { hash, size } of chunks) {
      const path = shardedPath(`${this.#store}/chunk`, String(hash));
      try {
        const { readable } = await Deno.open(path);
        const decoding = { compression: "zstd", narSizeMax: Number(size) } as const;
        let leftBytes = decoding.narSizeMax;
        for await (const piece of decoded(readable, decoding)) {
          leftBytes -= piece.length;
          if (leftBytes < 0) throw new Error("it holds more bytes than its row says");
          yield new Uint8Array(piece);
        }
      } catch (error) {
        const message = `Cannot read chunk ${path}: ${messageOf(error)}`;
        throw new Failure("absent", message, {}, error);
      }
    }
  }
}
