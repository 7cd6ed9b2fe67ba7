import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { type ByteSource, DirectStream } from "../../src/base/direct_stream.ts";
import { StreamSource } from "../../src/cache/download/growing_file.ts";
import { BodyReader } from "../../src/http/server/answer_writer.ts";
import { memorySource } from "../support/memory_source.ts";
import { checkProperty } from "../support/property.ts";
import type { Bytes } from "../../src/base/bytes.ts";

const FILE = Uint8Array.from({ length: 700_000 }, (_, at) => at * 7 + (at >> 8));

/** Bytes that a client takes at once, whether it then waits for long, and if memory is short. */
const takes = fc.array(
  fc.record({ bytes: fc.nat(300_000), waits: fc.boolean(), savesMemory: fc.boolean() }),
  { minLength: 1, maxLength: 30 },
);

const kinds = fc.constantFrom("memory", "pieces");

checkProperty(
  "body reader: however a client takes a file and waits, it gets each byte once",
  fc.asyncProperty(fc.nat(FILE.length), takes, kinds, async (length, client, kind) => {
    const got = new Uint8Array(length);
    let at = 0;
    let turn = 0;
    using reader = new BodyReader(streamOf(FILE.subarray(0, length), kind));
    while (await reader.next() > 0) {
      while (reader.piece.length > 0) {
        await reader.write(take, client[turn % client.length]?.savesMemory ?? false);
      }
    }
    assert.equal(at, length);
    assert.ok(Buffer.compare(got, FILE.subarray(0, length)) === 0);

    async function take(bytes: Uint8Array): Promise<number> {
      const { bytes: most, waits } = client[turn++ % client.length] ?? { bytes: 1, waits: false };
      if (waits) reader.shed();
      const taken = bytes.subarray(0, Math.max(most, 1_000));
      got.set(taken, at);
      at += taken.length;
      return taken.length;
    }
  }),
  { runs: 200 },
);

/** A file in memory, or in pieces that do not fit the reader's buffer. */
function streamOf(bytes: Bytes, kind: "memory" | "pieces"): DirectStream {
  return new DirectStream(kind === "memory" ? memorySource(bytes) : pieceSource(bytes), 1_000);
}

function pieceSource(bytes: Bytes): ByteSource {
  const pieces = [0, 0, 300_000, 300_010, 310_000].map((start, index, starts) =>
    bytes.subarray(start, starts[index + 1])
  );
  return new StreamSource(ReadableStream.from(pieces));
}
