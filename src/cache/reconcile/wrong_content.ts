import { createHash } from "node:crypto";
import type { KeptFile, NarRecord } from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import type { StoredNar } from "../../storage/nar_store.ts";
import { measureBytes } from "../verify/measure_nar.ts";

/** What is wrong with the bytes of a kept NAR file; `undefined` when nothing is. Reads it all. */
export async function wrongContent(
  nar: NarRecord,
  kept: KeptFile,
  stored: StoredNar,
): Promise<string | undefined> {
  const hash = createHash("sha256");
  const hashing = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      hash.update(chunk);
      controller.enqueue(chunk);
    },
  });
  const { compression, narSize } = nar;
  const bytes = stored.read(0, stored.fileSize).pipeThrough(hashing);
  const measure = await measureBytes(bytes, { compression, narSizeMax: narSize });
  if (measure.kind === "undecodable") return `it cannot be decompressed: ${measure.detail}`;
  if (sha256FromDigest(hash.digest()) !== kept.fileHash) return "its file hash is wrong";
  const isRight = measure.narSize === narSize && sha256FromDigest(measure.digest) === nar.narHash;
  return isRight ? undefined : "its NAR hash is wrong";
}
