import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import type { Change } from "../../src/metadata/metadata_store.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { narPathOf } from "../../src/storage/local/local_nar_store.ts";
import { fileOf, hash, keep, put } from "../../tests/support/metadata_rows.ts";
import { pastMonth } from "../../tests/support/past_month.ts";
import { pastPull } from "../../tests/support/past_pull.ts";

const MIB = 2 ** 20;
const HOUR_MS = 3_600_000;

/** Pinned systems: their number of paths, and the bytes of their NAR files. */
const SYSTEMS = [
  ["nixos-system-office-25.11", 1_184, 4_310 * MIB],
  ["nixos-system-laptop-25.11", 1_407, 5_870 * MIB],
  ["ci-toolchain-2026.11", 212, 1_940 * MIB],
] as const;

/** The other stored paths. */
const OTHERS = 400;

/**
 * Writes a month of an office's work into a new storage: the past that the pictures show. Its NAR
 * files have their sizes, but take no room on the disk.
 */
export async function writePast(folder: string): Promise<void> {
  const nowMs = Date.now();
  await using store = new SqliteMetadataStore(await openDatabase(`${folder}/db.sqlite`));
  const { rows, storedBytes } = pastMonth(nowMs);
  await store.recordHistory(rows, []);
  await store.recordPulls([pastPull(nowMs - HOUR_MS / 4)]);
  let leftBytes = storedBytes;
  for (const [index, [name, paths, bytes]] of SYSTEMS.entries()) {
    const own = await keepPaths({ store, folder, name, count: paths, bytes });
    leftBytes -= bytes;
    const pinnedAtMs = nowMs - (437 - 191 * index) * HOUR_MS;
    await store.apply([{ kind: "put-pin", pin: { storePathHash: own, pinnedAtMs } }]);
  }
  await keepPaths({ store, folder, name: "system-path", count: OTHERS, bytes: leftBytes });
}

interface Kept {
  readonly store: SqliteMetadataStore;
  readonly folder: string;
  readonly name: string;
  readonly count: number;
  readonly bytes: number;
}

/** Keeps a path of this name and those that it refers to. */
async function keepPaths({ store, folder, name, count, bytes }: Kept): Promise<StorePathHash> {
  const hashes = Array.from({ length: count }, (_, index) => hash(`${name} ${index}`));
  const [own = hash(name), ...references] = hashes;
  const fileSize = Math.floor(bytes / count);
  const changes: Change[] = [];
  for (const storePathHash of hashes) {
    const { row, nar, ...written } = put(storePathHash, storePathHash === own ? references : []);
    const body = `StorePath: /nix/store/${storePathHash}-${name}\nURL: nar/${nar.name}\n`;
    const file = fileOf(nar.name, fileSize);
    const path = `${folder}/nar/${narPathOf(file.at)}`;
    Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    Deno.writeFileSync(path, new Uint8Array());
    Deno.truncateSync(path, fileSize);
    changes.push({ ...written, nar, row: { ...row, body } }, ...keep(file));
  }
  await store.apply(changes);
  return own;
}
