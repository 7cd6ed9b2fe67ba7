import { looksLikeObject } from "../../base/json_object.ts";
import { ByteBlocks } from "../../base/byte_blocks.ts";
import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { streamFrom } from "../../base/stream_of.ts";

import { decoded } from "./decoders.ts";
import type { BodyOrder, DecodedBody } from "./nar_verifier.ts";
import { type Pace, sharedPace } from "./pace.ts";

const INPUT_BYTES = 64 * 1024;

/** Decodes a small body. Use it in a Worker. Claims the output before the work. */
export async function decodeBody(
  bytes: Bytes,
  { compression, bytesMax, result }: Omit<BodyOrder, "turns">,
  pace: Pace = sharedPace(),
): Promise<DecodedBody> {
  const blocks = new ByteBlocks();
  const decoding = { compression, narSizeMax: bytesMax };
  await pace.claim(bytesMax);
  try {
    const claim = (claimed: number) => pace.claim(claimed);
    for await (const piece of decoded(paced(bytes, pace), decoding, claim)) {
      if (blocks.byteLength + piece.length > bytesMax) return { kind: "too-large" };
      blocks.add(piece);
      await pace.step(blocks.byteLength);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    return { kind: "damaged", detail: messageOf(error) };
  }
  const all = blocks.joined();
  if (result === "bytes") return { kind: "bytes", bytes: all };
  return { kind: "shape", isObject: looksLikeObject(all) };
}

function paced(bytes: Bytes, pace: Pace): ReadableStream<Bytes> {
  let position = 0;
  return streamFrom<Bytes>({
    async next() {
      // Input without output is work, too.
      await pace.step(0);
      const piece = bytes.subarray(position, position + INPUT_BYTES);
      position += piece.length;
      return piece.length === 0 ? undefined : piece;
    },
    cancel() {},
  });
}
