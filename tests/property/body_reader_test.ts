import assert from "node:assert/strict";
import fc from "fast-check";
import { DirectStream } from "../../src/base/direct_stream.ts";
import { BodyReader } from "../../src/http/server/body_reader.ts";
import { checkProperty } from "../support/property.ts";

const FILE = Uint8Array.from({ length: 700_000 }, (_, at) => at * 7 + (at >> 8));

/** What a client takes at once, whether it then waits for long, and whether memory is short. */
const takes = fc.array(
  fc.record({ bytes: fc.nat(300_000), waits: fc.boolean(), savesMemory: fc.boolean() }),
  { minLength: 1, maxLength: 30 },
);

checkProperty(
  "body reader: however a client takes a file and waits, it gets each byte once",
  fc.asyncProperty(fc.nat(FILE.length), takes, async (length, client) => {
    const got = new Uint8Array(length);
    let at = 0;
    let turn = 0;
    using reader = new BodyReader(streamOf(FILE.subarray(0, length)));
    while (await reader.next() > 0) {
      while (reader.piece.length > 0) {
        await reader.write(take, client[turn % client.length]?.savesMemory ?? false);
      }
    }
    assert.equal(at, length);
    assert.deepEqual(got, FILE.slice(0, length));

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

/** A file in memory. */
function streamOf(bytes: Uint8Array<ArrayBuffer>): DirectStream {
  let at = 0;
  const source = {
    async read(into: Uint8Array<ArrayBuffer>): Promise<number> {
      const piece = bytes.subarray(at, at + into.length);
      into.set(piece);
      at += piece.length;
      return piece.length;
    },
    rewind: (byteLength: number) => void (at -= byteLength),
    close() {},
  };
  return new DirectStream(source, 1_000);
}
