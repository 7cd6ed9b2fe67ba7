import { createHash } from "node:crypto";
import { Failure } from "../../base/failure.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import type { StoredNar } from "../../storage/nar_store.ts";

type Bytes = ReadableStream<Uint8Array<ArrayBuffer>>;

/**
 * SHA-256 of a whole stored file, which is closed then. Requests are answered between its pieces:
 * each takes a quarter of a millisecond. Throws when it cannot be read.
 */
export async function contentHash(stored: StoredNar): Promise<Sha256> {
  const hash = createHash("sha256");
  for await (const piece of stored.read(0, stored.fileSize)) hash.update(piece);
  return sha256FromDigest(hash.digest());
}

/**
 * A whole file's bytes, hashed on their way. The last piece is held back until `judge` is told
 * the hash: where it says no the stream fails, and nobody gets a complete file.
 */
export function judgedOnTheWay(
  bytes: Bytes,
  fileSize: number,
  judge: (hash: Sha256) => boolean,
): Bytes {
  const hash = createHash("sha256");
  const reader = bytes.getReader();
  let position = 0;
  return new ReadableStream({
    async pull(controller) {
      const { value } = await reader.read();
      if (value === undefined) return controller.close();
      hash.update(value);
      position += value.length;
      if (position >= fileSize && !judge(sha256FromDigest(hash.digest()))) {
        await reader.cancel();
        throw new Failure("corrupt", "Cannot send NAR: its file has been changed");
      }
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}
