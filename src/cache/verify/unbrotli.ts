import { createBrotliDecompress } from "node:zlib";
import { NodeDecoder } from "./node_decoder.ts";

/** Decompresses brotli at the reader's pace. Throws for damage; a cut file ends short. */
export async function* unbrotli(
  bytes: AsyncIterable<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<Uint8Array> {
  const chunks = bytes[Symbol.asyncIterator]();
  const decoder = new NodeDecoder(createBrotliDecompress());
  try {
    for (;;) {
      const out = await decoder.output();
      if (out === "over") return;
      if (out === "hungry") {
        const { value, done } = await chunks.next();
        if (done) decoder.end();
        else decoder.feed(value);
      } else yield out;
    }
  } finally {
    await decoder.close();
    await chunks.return?.();
  }
}
