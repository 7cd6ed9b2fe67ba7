import { createHash } from "node:crypto";
import { constants, createZstdCompress } from "node:zlib";
import type { Bytes } from "../../base/bytes.ts";
import { writeFully } from "../../base/files.ts";
import { messageOf } from "../../base/failure.ts";
import { files } from "../../runtime/current.ts";
import { RECOMPRESSED_WINDOW_BYTES } from "../forms/recompressed.ts";
import { decoded } from "../verify/decoders.ts";
import { NodeDecoder } from "../verify/node_decoder.ts";
import type { Encoded, EncodeOrder } from "./nar_encoder.ts";

/**
 * Pieces of the NAR for the encoder: each costs a turn of the event loop. So soon it yields to a
 * client: within 50 ms also at the highest level, of 3 MB/s.
 */
const INPUT_BYTES = 128 * 1024;

class TooLarge extends Error {}

/** The decoder or its input failed: the NAR file is at fault. */
class Undecodable extends Error {}

/** True where the runtime can write zstd: its `node:zlib` throws otherwise. */
export function hasZstdEncoder(): boolean {
  try {
    createZstdCompress().destroy();
    return true;
  } catch {
    return false;
  }
}

/**
 * Writes the NAR of a file again in zstd. Use it in a Worker: it blocks its thread. It waits for a
 * `turn` before each piece of the NAR.
 */
export async function encodeNar(
  bytes: ReadableStream<Bytes>,
  order: EncodeOrder,
  turn: () => Promise<void>,
): Promise<Encoded> {
  const { path, fileBytesMax, narSize: expected } = order;
  using file = await files.open(path, { write: true, createNew: true });
  const [narHash, fileHash] = [createHash("sha256"), createHash("sha256")];
  let [narSize, fileSize] = [0, 0];
  const encoder = new NodeDecoder(createZstdCompress(optionsOf(order)));
  const drain = async () => {
    for (;;) {
      const out = await encoder.output();
      if (typeof out === "string") return;
      fileSize += out.length;
      if (fileSize > fileBytesMax) throw new TooLarge();
      fileHash.update(out);
      await writeFully(file, out);
    }
  };
  try {
    for await (const piece of gathered(decodedNar(bytes, order))) {
      await turn();
      narSize += piece.length;
      if (narSize > expected) throw new Undecodable(`it holds more than ${expected} bytes`);
      narHash.update(piece);
      encoder.feed(piece);
      await drain();
    }
    if (narSize < expected) throw new Undecodable(`it holds ${narSize} bytes, not ${expected}`);
    encoder.end();
    await drain();
  } catch (error) {
    if (error instanceof TooLarge) return { kind: "too-large" };
    if (error instanceof Undecodable) return { kind: "undecodable", detail: error.message };
    throw error;
  } finally {
    await encoder.close();
  }
  const digests = { narDigest: narHash.digest(), fileDigest: fileHash.digest() };
  return { kind: "encoded", ...digests, narSize, fileSize };
}

function optionsOf({ level, narSize }: EncodeOrder) {
  return {
    pledgedSrcSize: narSize,
    params: {
      [constants.ZSTD_c_compressionLevel]: level,
      [constants.ZSTD_c_windowLog]: Math.log2(RECOMPRESSED_WINDOW_BYTES),
      [constants.ZSTD_c_checksumFlag]: 1,
    },
  };
}

async function* decodedNar(
  bytes: ReadableStream<Bytes>,
  { compression, narSize: narSizeMax }: EncodeOrder,
): AsyncGenerator<Uint8Array> {
  try {
    yield* decoded(bytes, { compression, narSizeMax });
  } catch (error) {
    throw new Undecodable(messageOf(error));
  }
}

/** The same bytes in large pieces, which the reader may keep until the next one. */
async function* gathered(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const held = new Uint8Array(INPUT_BYTES);
  let heldBytes = 0;
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length;) {
      const part = piece.subarray(at, at + INPUT_BYTES - heldBytes);
      held.set(part, heldBytes);
      heldBytes += part.length;
      at += part.length;
      if (heldBytes < INPUT_BYTES) continue;
      yield held;
      heldBytes = 0;
    }
  }
  if (heldBytes > 0) yield held.subarray(0, heldBytes);
}
