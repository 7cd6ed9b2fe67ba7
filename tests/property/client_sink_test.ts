import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fc from "fast-check";
import { ClientReader, ClientSink } from "../../src/cache/pass_through/client_sink.ts";
import { type FileHash, type NarHash, sha256FromDigest } from "../../src/nix/hash.ts";
import { narName } from "../../src/nix/nar_name.ts";
import { checkProperty } from "../support/property.ts";

const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), {
  minLength: 1,
  maxLength: 10,
});
const place = fc.integer({ min: 0, max: 500 });

interface Scene {
  readonly sink: ClientSink;
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** The bytes that the client wants, as they come. */
  read(): AsyncGenerator<Uint8Array>;
}

/** A client that has begun to read: the sink never collects its bytes first. */
function sceneOf(parts: readonly Uint8Array[], [one, other]: readonly [number, number]): Scene {
  const bytes = new Uint8Array(parts.flatMap((part) => [...part]));
  const [from = 0, end = 0] = [one, other].map((at) => Math.min(at, bytes.length)).toSorted((
    a,
    b,
  ) => a - b);
  const start = Math.min(from, bytes.length - 1);
  const sent = { from: start, at: () => new Uint8Array(0) };
  const part = { start, end: Math.max(end, start + 1), sent };
  const client = new ClientReader(part);
  const sha256 = sha256FromDigest(createHash("sha256").update(bytes).digest());
  const sink = new ClientSink({
    check: {
      nar: {
        name: narName(sha256, "none"),
        compression: "none",
        narHash: sha256 as NarHash,
        narSize: bytes.length,
        fileHash: sha256 as FileHash,
      },
      verifier: { passThrough: () => assert.fail("the file is the NAR") },
      wrong: () => assert.fail("it is right"),
    },
    client,
    listener: { progress: () => undefined, room: (wanted) => Promise.resolve(wanted) },
  });
  sink.begin({ upstream: "https://a.example" }, {});
  return { sink, bytes, start, end: part.end, read: () => client.pieces(part) };
}

checkProperty(
  "pass-through: a client gets its part, and the last byte of it after the check result",
  fc.asyncProperty(pieces, fc.tuple(place, place), async (parts, ends) => {
    const { sink, bytes, start, end, read } = sceneOf(parts, ends);
    const got: number[] = [];
    const reading = (async () => {
      for await (const piece of read()) got.push(...piece);
    })();
    for (const part of parts) await sink.write(part.slice());
    assert.ok(got.length < end - start, "before the check result");
    assert.ok(parts.length === 0 || sink.rate.idleMs !== undefined, "its rate is known");
    await sink.judge({
      type: "end",
      fileSize: bytes.length,
      digest: sink.digest,
      maybeShort: false,
    });
    await reading;
    assert.deepEqual(got, [...bytes.subarray(start, end)]);
  }),
);

checkProperty(
  "pass-through: at most one piece is in before the client asks for it",
  fc.asyncProperty(pieces, async (parts) => {
    const { sink, bytes, read } = sceneOf(parts, [0, Infinity]);
    let [written, isOver] = [0, false];
    const writing = (async () => {
      for (const part of parts) {
        await sink.write(part.slice());
        written++;
      }
      isOver = true;
    })();
    const reader = read();
    for (let taken = 0; !isOver && taken < parts.length - 1; taken++) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      assert.ok(written <= taken + 1, `${written} written, ${taken} taken`);
      await reader.next();
    }
    await reader.return(undefined);
    await writing;
    assert.equal(sink.received, bytes.length);
  }),
);
