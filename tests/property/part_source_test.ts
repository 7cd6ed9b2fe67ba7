import assert from "node:assert/strict";
import fc from "fast-check";
import type { Bytes } from "../../src/base/bytes.ts";
import { clippedParts, type PartLists, streamOfParts } from "../../src/cache/forms/part_source.ts";
import { checkProperty } from "../support/property.ts";

/** Lists of parts by their lengths; the bytes of all of them count on. */
const lengths = fc.array(fc.array(fc.nat(9), { maxLength: 4 }), { maxLength: 6 });

async function* listsOf(all: readonly (readonly number[])[]): PartLists {
  let at = 0;
  for (const list of all) {
    const parts = list.map((length) => Uint8Array.from({ length }, () => at++));
    yield parts;
    // Who gives parts takes their memory back.
    for (const part of parts) part.fill(255);
  }
}

checkProperty(
  "part source: any part of any parts is read in order, whatever is read twice",
  fc.asyncProperty(
    fc.record({
      ...{ lengths, start: fc.nat(60), length: fc.integer({ min: 1, max: 60 }) },
      whenWhole: fc.boolean(),
      buffers: fc.infiniteStream(fc.integer({ min: 1, max: 12 })),
      rewinds: fc.infiniteStream(fc.nat(3)),
    }),
    async ({ lengths, start, length, whenWhole, buffers, rewinds }) => {
      const total = lengths.flat().reduce((sum, one) => sum + one, 0);
      const end = start + length;
      const lists = clippedParts(listsOf(lengths), { start, end, whenWhole });
      const { source } = streamOfParts(lists, () => undefined).stream;
      const read: number[] = [];
      for (;;) {
        let lent: Bytes = new Uint8Array(0);
        const lend = () => lent = new Uint8Array(buffers.next().value ?? 1);
        const got = await source.read(lend);
        if (got === 0) break;
        const again = Math.min(got, rewinds.next().value ?? 0);
        read.push(...lent.subarray(0, got - again));
        source.rewind(again);
      }
      const wanted = Array.from({ length: total }, (_, at) => at).slice(start, end);
      assert.deepEqual(read, wanted);
    },
  ),
  { runs: 200 },
);

Deno.test("part source: the last byte waits for the end of all parts", async () => {
  const broken = async function* (): PartLists {
    yield [Uint8Array.of(1, 2, 3)];
    yield [Uint8Array.of(4)];
    throw new Error("they are wrong");
  };
  const read: number[] = [];
  const reading = async () => {
    const clipped = clippedParts(broken(), { start: 1, end: 3, whenWhole: true });
    for await (const piece of streamOfParts(clipped, () => undefined).stream) read.push(...piece);
  };
  await assert.rejects(reading(), /they are wrong/);
  assert.deepEqual(read, [2]);
});

Deno.test("part source: a close ends a wait for parts", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const waiting = async function* (): PartLists {
    await promise;
    yield [];
  };
  const { stream } = streamOfParts(waiting(), resolve);
  const read = stream.source.read(() => assert.fail("there is nothing to read"));
  stream.source.close();
  assert.equal(await read, 0);
});
