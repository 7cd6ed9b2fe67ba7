import assert from "node:assert/strict";
import { type BufferLender, type ByteSource, DirectStream } from "../../src/base/direct_stream.ts";
import { turns } from "../support/mortal_life.ts";
import type { Clauses } from "./contract.ts";

export const FILE = new TextEncoder().encode("abcdefghij");

/** Where a source waits or breaks, counted in bytes. */
export const HALF = 5;

/** Makes one source of FILE. */
export interface SourceScene {
  /** "waits": at HALF, until `arrive`. "breaks": the bytes from HALF on are missing. */
  open(fault?: "waits" | "breaks"): ByteSource;
  /** The bytes that a source waits for are here. */
  arrive(): void;
  /** Whether the source has given back its file or stream. */
  isReleased(): boolean;
}

export const byteSourceClauses: Clauses<SourceScene> = {
  "each byte comes once, whether the buffer is short or long": async (scene) => {
    const source = scene.open();
    const short = await piece(source, 1);
    assert.equal(short, "a");
    assert.equal(short + await all(source), "abcdefghij");
    source.close();
  },

  "the end is 0 for each read behind it, and lends no buffer": async (scene) => {
    const source = scene.open();
    await all(source);
    const lend = () => assert.fail("nothing is to be filled");
    assert.deepEqual([await source.read(lend), await source.read(lend)], [0, 0]);
    source.close();
  },

  "rewind() repeats the last bytes of a read": async (scene) => {
    const source = scene.open();
    const read = await piece(source, 4);
    source.rewind(read.length - 1);
    assert.equal(read[0] + await all(source), "abcdefghij");
    source.close();
  },

  "rewind() repeats the last bytes also after the end": async (scene) => {
    const source = scene.open();
    let last = "";
    for (let read = await piece(source, 3); read !== ""; read = await piece(source, 3)) last = read;
    source.rewind(last.length);
    assert.equal(await all(source), last);
    source.close();
  },

  "a read that waits lends no buffer before its bytes arrive": async (scene) => {
    const source = scene.open("waits");
    assert.equal(await upTo(source, HALF), "abcde");
    let lent = 0;
    const reading = source.read((byteLength) => {
      lent++;
      return new Uint8Array(byteLength);
    });
    await turns(3);
    assert.equal(lent, 0);
    scene.arrive();
    const length = await reading;
    assert.equal(lent, 1);
    assert.equal("fghij".slice(length), await all(source));
    source.close();
  },

  "close() ends a read that waits": async (scene) => {
    const source = scene.open("waits");
    await upTo(source, HALF);
    const reading = source.read(() => assert.fail("nothing is to be filled"));
    await turns();
    source.close();
    assert.equal(await reading, 0);
  },

  "missing bytes are a throw, behind the bytes before them": async (scene) => {
    const source = scene.open("breaks");
    assert.equal(await upTo(source, HALF), "abcde");
    await assert.rejects(piece(source, 64));
    source.close();
  },

  "nothing is read after close()": async (scene) => {
    const source = scene.open();
    await piece(source, 1);
    source.close();
    assert.equal(await piece(source, 64).catch(() => ""), "");
  },

  "close() gives back what it reads from, and may be called twice": async (scene) => {
    const source = scene.open();
    await piece(source, 1);
    assert.equal(scene.isReleased(), false);
    source.close();
    source.close();
    assert.equal(scene.isReleased(), true);
  },

  "a stream of it has each byte once, and closes it at the end": async (scene) => {
    const stream = new DirectStream(scene.open(), 3);
    assert.equal(await new Response(stream).text(), "abcdefghij");
    assert.equal(scene.isReleased(), true);
  },

  "a stream of it breaks where bytes are missing, and closes it": async (scene) => {
    const stream = new DirectStream(scene.open("breaks"), 3);
    await assert.rejects(new Response(stream).text());
    assert.equal(scene.isReleased(), true);
  },

  "a stream that is cancelled closes it": async (scene) => {
    await new DirectStream(scene.open(), 3).cancel();
    assert.equal(scene.isReleased(), true);
  },
};

/** One read, with a buffer of that length. */
async function piece(source: ByteSource, length: number): Promise<string> {
  const buffers: Uint8Array<ArrayBuffer>[] = [];
  const lend: BufferLender = (byteLength) => {
    assert.ok(byteLength > 0);
    const buffer = new Uint8Array(length);
    buffers.push(buffer);
    return buffer;
  };
  const filled = await source.read(lend);
  assert.ok(buffers.length <= 1, `${buffers.length} buffers for one read`);
  return new TextDecoder().decode(buffers[0]?.subarray(0, filled));
}

/** Reads until it has that many bytes. */
async function upTo(source: ByteSource, length: number): Promise<string> {
  let text = "";
  while (text.length < length) {
    const read = await piece(source, length - text.length);
    assert.notEqual(read, "", "it ends too early");
    text += read;
  }
  return text;
}

/** All that is left. */
async function all(source: ByteSource): Promise<string> {
  let text = "";
  for (let read = await piece(source, 64); read !== ""; read = await piece(source, 64)) {
    text += read;
  }
  return text;
}
