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
  fc.asyncProperty(fc.nat(FILE.length), fc.nat(FILE.length), takes, async (length, own, client) => {
    const got = new Uint8Array(length);
    let at = 0;
    let turn = 0;
    using reader = new BodyReader(streamOf(FILE.subarray(0, length), own));
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

Deno.test("direct stream: as a stream, it has the source and then the rest", async () => {
  for (const own of [0, 1_500, FILE.length]) {
    const bytes = await new Response(streamOf(FILE, own)).bytes();
    assert.deepEqual(bytes, FILE);
  }
});

Deno.test("body reader: a client that leaves ends the rest as well", async () => {
  const ended = Promise.withResolvers<void>();
  const rest = new ReadableStream<Uint8Array<ArrayBuffer>>({ cancel: () => ended.resolve() });
  const source = {
    ready: () => Promise.resolve(),
    read: () => Promise.resolve(0),
    rest: () => rest,
    rewind() {},
    close() {},
  };
  const reader = new BodyReader(new DirectStream(source, 1_000));
  const reading = reader.next();
  await new Promise((resolve) => setTimeout(resolve));
  reader.cancel();
  assert.equal(await reading, 0);
  await ended.promise;
});

/** A file in memory, whose source has the first bytes alone. */
function streamOf(file: Uint8Array<ArrayBuffer>, ownLength: number): DirectStream {
  let at = 0;
  const bytes = file.subarray(0, ownLength);
  const source = {
    ready: () => Promise.resolve(),
    rest: () => ownLength >= file.length ? undefined : ReadableStream.from([file.slice(ownLength)]),
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
