import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import { sha256FromDigest } from "../../src/nix/hash.ts";
import { type NarName, renamedNar } from "../../src/nix/nar_name.ts";
import { newStoredName } from "../../src/nix/stored_name.ts";
import type { NarStore } from "../../src/storage/nar_store.ts";
import type { StoreObject } from "./store_object.ts";
import { storedZstd } from "./stored_frames.ts";

/** A NAR whose file was replaced by one in zstd, and the name that its narinfo has now. */
export interface RecompressedNar {
  readonly former: NarName;
  readonly name: NarName;
  readonly file: Bytes;
}

/** Replaces the kept file of an object as recompression does, by default with a valid one. */
export async function recompressed(
  { metadata, nars, tempPath }: {
    readonly metadata: MetadataStore;
    readonly nars: NarStore;
    readonly tempPath: string;
  },
  object: StoreObject,
  file = twoFrames(object),
): Promise<RecompressedNar> {
  const row = await metadata.findNarinfo(object.storePathHash);
  const kept = row && (await metadata.findNar(row.narName))?.kept;
  if (row === undefined || kept === undefined) throw new Error(`${object.storePath} is not kept`);
  const path = `${tempPath}/${crypto.randomUUID()}.part`;
  Deno.writeFileSync(path, file);
  const { narName: former } = row;
  const at = newStoredName(former);
  await metadata.apply([{ kind: "nar-publishing", at, owner: "test" }]);
  const seal = await nars.put(at, path);
  const fileHash = sha256FromDigest(createHash("sha256").update(file).digest());
  const facts = { at, seal, fileHash, fileSize: file.length, keptAtMs: 1, form: "zstd" } as const;
  await metadata.apply([{
    kind: "nar-kept",
    ...{ file: facts, owner: "test", atMs: Date.now() },
    replaces: { at: kept.at, quietSinceMs: Date.now() },
  }]);
  await nars.remove(kept.at);
  await metadata.apply([{ kind: "nar-gone", at: kept.at }]);
  return { former, name: renamedNar(former, "zstd"), file };
}

/** Other bytes than those that larder speaks. */
function twoFrames({ nar }: StoreObject): Bytes {
  const half = nar.length >> 1;
  return Uint8Array.from([nar.subarray(0, half), nar.subarray(half)].flatMap((part) => [
    ...storedZstd(part),
  ]));
}
