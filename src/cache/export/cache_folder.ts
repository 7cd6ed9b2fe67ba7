import { digestOf } from "../../base/digest_of.ts";
import { Failure, reasonOf } from "../../base/failure.ts";
import { fileBytes, writeFully } from "../../base/files.ts";
import { FORMER_NAMES_SUFFIX } from "../../nix/former_names.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { formatNixCacheInfo } from "../../nix/nix_cache_info.ts";
import { STORE_DIR, type StorePathHash } from "../../nix/store_path.ts";
import { dice, files } from "../../runtime/current.ts";
import type { OpenFile } from "../../runtime/files.ts";

/** Priority of the written cache: that of cache.nixos.org, so larder comes before it. */
const PRIORITY = 40;

/** A folder that is a binary cache. Each file gets its name when it is whole and on disk. */
export class CacheFolder {
  readonly #path: string;

  /** Makes a missing folder. Throws a Failure where it cannot be written. */
  constructor(path: string) {
    this.#path = path;
    try {
      files.mkdirSync(`${path}/nar`, { recursive: true });
    } catch (error) {
      throw new Failure("broken", `Cannot write to ${path}: ${reasonOf(error)}`, {}, error);
    }
  }

  /** Writes `nix-cache-info`, unless there is one. */
  async describe(): Promise<void> {
    if (fileBytes(`${this.#path}/nix-cache-info`) !== undefined) return;
    const info = { storeDir: STORE_DIR, wantMassQuery: true, priority: PRIORITY };
    await this.#writeText("nix-cache-info", formatNixCacheInfo(info));
  }

  /** A name stands for its content, so a file of that name and size is the same. */
  hasNar(name: NarName, fileSize: number): boolean {
    return fileBytes(`${this.#path}/nar/${name}`) === fileSize;
  }

  /** Rejects, and leaves nothing, where the bytes have another hash. */
  async putNar(
    name: NarName,
    bytes: ReadableStream<Uint8Array>,
    fileHash: Sha256,
  ): Promise<void> {
    await this.#write(`nar/${name}`, async (file) => {
      const digest = await digestOf(bytes, (piece) => writeFully(file, piece));
      const found = sha256FromDigest(digest);
      if (found === fileHash) return;
      throw new Failure("corrupt", `Cannot export NAR file: its hash is ${found}, not ${fileHash}`);
    });
  }

  /** Its clients are binary caches of larder: Nix requests no such file. */
  async putFormerNames(storePathHash: StorePathHash, text: string): Promise<void> {
    await this.#writeText(`${storePathHash}${FORMER_NAMES_SUFFIX}`, text);
  }

  async putNarinfo(storePathHash: StorePathHash, text: string): Promise<void> {
    await this.#writeText(`${storePathHash}.narinfo`, text);
  }

  async #writeText(name: string, text: string): Promise<void> {
    await this.#write(name, (file) => writeFully(file, new TextEncoder().encode(text)));
  }

  async #write(name: string, fill: (file: OpenFile) => Promise<void>): Promise<void> {
    const path = `${this.#path}/${name}`;
    const growing = `${path}.${dice.uuid()}.part`;
    try {
      using file = await files.open(growing, { write: true, createNew: true });
      await fill(file);
      await file.sync();
      await files.rename(growing, path);
    } catch (error) {
      await files.remove(growing).catch(() => undefined);
      throw error;
    }
  }
}
