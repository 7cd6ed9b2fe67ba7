import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { Bytes } from "../../src/base/bytes.ts";
import type { Codec } from "../../src/nix/content_encoding.ts";
import type {
  BodyOrder,
  NarMeasure,
  NarVerifier,
  PassThroughOrder,
  PassThroughVerification,
  VerifyOrder,
} from "../../src/cache/verify/nar_verifier.ts";
import { FIXTURE_NAR, NAR_FIXTURES } from "../support/nar_fixtures.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { zstdBlocks, zstdFrame } from "../support/zstd_frames.ts";
import type { Clauses } from "./contract.ts";

export interface VerifierScene {
  readonly verifier: NarVerifier;
  /** An empty folder. */
  readonly folder: string;
  /** Names of NAR fixtures that it can measure. */
  readonly files: readonly [string, ...string[]];
}

/** A verifier whose threads end with it. */
export interface ThreadsScene {
  end(): void;
}

/** Far more than any verification here takes, on a busy machine. */
const MEMORY_WAIT_MS = 60_000;

/** More than two threads have memory for, in decoders of xz. */
const PASS_THROUGHS = 8;

const XZ = "shelf.nar.xz";

const MEASURED = {
  kind: "measured",
  digest: new Uint8Array(createHash("sha256").update(FIXTURE_NAR).digest()),
  narSize: FIXTURE_NAR.length,
} as const;

const MIB = 1 << 20;

const TURNS = { client: "192.0.2.1", budgetMs: 1_000 };
const BOMBS = 8;

/** The promises on files. */
export const narVerifierClauses: Clauses<VerifierScene> = {
  "a whole file is measured, whatever its compression": async (scene) => {
    for (const file of scene.files) {
      assert.deepEqual(await wholeMeasure(scene, orderOf(scene, file)), MEASURED);
    }
  },

  "a growing file is read no further than it has grown": async (scene) => {
    const { bytes } = fixture(scene.files[0]);
    const order = orderOf(scene);
    const half = Math.floor(bytes.length / 2);
    Deno.writeFileSync(order.path, bytes.map((byte, at) => at < half ? byte : ~byte));
    using verification = scene.verifier.start(order);
    verification.grown(half, false);
    // The same thread takes it up later.
    await wholeMeasure(scene, orderOf(scene, undefined, "other"));
    // In place: one that another thread reads may never be empty.
    using file = Deno.openSync(order.path, { write: true });
    file.writeSync(bytes);
    verification.grown(bytes.length, true);
    assert.deepEqual(await verification.measure, MEASURED);
  },

  "damage is a check result, and no rejection": async (scene) => {
    const { bytes } = fixture(scene.files[0]);
    const middle = Math.floor(bytes.length / 2);
    const order = orderOf(scene);
    Deno.writeFileSync(order.path, bytes.map((byte, at) => at === middle ? ~byte : byte));
    assert.notDeepEqual(await wholeMeasure(scene, order), MEASURED);
  },

  "a file that holds more than it may is undecodable": async (scene) => {
    const order = { ...orderOf(scene), narSizeMax: FIXTURE_NAR.length - 1 };
    assert.equal((await wholeMeasure(scene, order)).kind, "undecodable");
  },

  "a file that cannot be read is a rejection": async (scene) => {
    const order = orderOf(scene);
    Deno.removeSync(order.path);
    using verification = scene.verifier.start(order);
    verification.grown(1, true);
    await assert.rejects(verification.measure);
  },

  "a file that is shorter than it has grown is a rejection": async (scene) => {
    const order = orderOf(scene);
    using verification = scene.verifier.start(order);
    verification.grown(Deno.statSync(order.path).size + 1, true);
    await assert.rejects(verification.measure);
  },

  "an end is a rejection, whether or not the file has grown": async (scene) => {
    const { verifier } = scene;
    const order = orderOf(scene);
    const { size } = Deno.statSync(order.path);
    using other = verifier.start(orderOf(scene, undefined, "other"));
    other.grown(1, false);
    for (const grownBytes of [undefined, Math.floor(size / 2)]) {
      const verification = verifier.start(order);
      if (grownBytes !== undefined) verification.grown(grownBytes, false);
      verification[Symbol.dispose]();
      await assert.rejects(verification.measure);
    }
    other.grown(size, true);
    assert.deepEqual(await other.measure, MEASURED, "another is not ended");
  },

  "an end behind the check result, or a second one, changes nothing": async (scene) => {
    const order = orderOf(scene);
    const verification = scene.verifier.start(order);
    verification.grown(Deno.statSync(order.path).size, true);
    const measure = await verification.measure;
    verification[Symbol.dispose]();
    verification[Symbol.dispose]();
    assert.equal(await verification.measure, measure);
  },
};

/** The promises on pieces, and on the end of the threads that measure. */
export const verifyThreadClauses: Clauses<VerifierScene & ThreadsScene> = {
  "the measure has the NAR where the order wants it": async (scene) => {
    for (const file of scene.files) {
      const measure = await wholeMeasure(scene, { ...orderOf(scene, file), givesNar: true });
      assert.ok(measure.kind === "measured" && measure.nar !== undefined);
      assertSameBytes(measure.nar, FIXTURE_NAR);
    }
  },

  "pieces are measured as the file that they are": async ({ verifier, files }) => {
    for (const name of files) {
      using passes = verifier.passThrough(passThroughOf(name));
      await writeAll(passes, fixture(name).bytes);
      passes.end();
      assert.deepEqual(await passes.measure, MEASURED);
    }
  },

  "a taker gets the NAR in pieces, one at a time": async ({ verifier, files }) => {
    for (const name of files) {
      const pieces: Bytes[] = [];
      let isTaking = false;
      let taken: Bytes | undefined;
      const taker = async (piece: Bytes) => {
        assert.equal(isTaking, false);
        assert.equal(taken?.length ?? 0, 0, "its memory went back");
        isTaking = true;
        await Promise.resolve();
        pieces.push(piece.slice());
        taken = piece;
        isTaking = false;
      };
      using passes = verifier.passThrough(passThroughOf(name), taker);
      await writeAll(passes, fixture(name).bytes);
      passes.end();
      assert.deepEqual(await passes.measure, MEASURED);
      assertSameBytes(await new Blob(pieces).bytes(), FIXTURE_NAR);
    }
  },

  "a NAR for which somebody vouches is decompressed, and counted only": async (scene) => {
    const { verifier, files } = scene;
    for (const name of files) {
      const pieces: Bytes[] = [];
      const taker = async (piece: Bytes) => void pieces.push(piece.slice());
      using passes = verifier.passThrough({ ...passThroughOf(name), hashesNar: false }, taker);
      await writeAll(passes, fixture(name).bytes);
      passes.end();
      const count = { kind: "counted", narSize: FIXTURE_NAR.length } as const;
      assert.deepEqual(await passes.measure, count);
      assertSameBytes(await new Blob(pieces).bytes(), FIXTURE_NAR);
    }
  },

  "an end frees a pass-through whose taker holds a piece": async ({ verifier }) => {
    const held = Promise.withResolvers<void>();
    const passes = verifier.passThrough(passThroughOf(XZ), () => {
      held.resolve();
      return new Promise(() => undefined);
    });
    const written = writeAll(passes, fixture(XZ).bytes);
    await held.promise;
    passes[Symbol.dispose]();
    await assert.rejects(passes.measure);
    await written;
  },

  "pieces that end too early are never measured as the NAR": async ({ verifier, files }) => {
    for (const name of files) {
      const { bytes } = fixture(name);
      using passes = verifier.passThrough(passThroughOf(name));
      await writeAll(passes, bytes.subarray(0, bytes.length / 2));
      passes.end();
      assert.notDeepEqual(await passes.measure, MEASURED);
    }
  },

  "behind damaged pieces the check result is there, and writes go nowhere": async (scene) => {
    using passes = scene.verifier.passThrough(passThroughOf(XZ));
    await writeAll(passes, fixture(XZ).bytes.map((byte) => ~byte));
    assert.equal((await passes.measure).kind, "undecodable");
    await passes.write(fixture(XZ).bytes);
    passes.end();
  },

  "an end of a pass-through is a rejection, and frees its writer": async ({ verifier }) => {
    const { bytes } = fixture(XZ);
    const passes = verifier.passThrough(passThroughOf(XZ));
    const write = passes.write(bytes.slice(0, 10));
    passes[Symbol.dispose]();
    passes[Symbol.dispose]();
    await assert.rejects(passes.measure);
    await write;
    await passes.write(bytes.slice(10));
    passes.end();
  },

  "a pass-through without memory for its decoder is unavailable": async ({ verifier }) => {
    // Each may hold a dictionary of 64 MiB.
    const order = { ...passThroughOf(XZ), narSizeMax: 1 << 30 };
    {
      using held = new DisposableStack();
      const kinds = Array.from({ length: PASS_THROUGHS }, () => {
        const { measure } = held.use(verifier.passThrough({ ...order, memoryWaitMs: 1 }));
        return measure.then(() => assert.fail("it has no bytes"), ({ kind }) => kind);
      });
      assert.equal(await Promise.race(kinds), "unavailable");
    }
    using passes = verifier.passThrough(order);
    await writeAll(passes, fixture(XZ).bytes);
    passes.end();
    assert.deepEqual(await passes.measure, MEASURED, "the others have given theirs back");
  },

  "a file in turns is measured, whole or while it grows": async (scene) => {
    for (const name of scene.files) {
      const order = { ...orderOf(scene, name), turns: TURNS };
      assert.deepEqual(await wholeMeasure(scene, order), MEASURED);
      const { size } = Deno.statSync(order.path);
      using verification = scene.verifier.start(order);
      for (const bytes of [1, Math.floor(size / 2), size - 1]) verification.grown(bytes, false);
      verification.grown(size, true);
      assert.deepEqual(await verification.measure, MEASURED);
    }
  },

  "a small file in turns passes large ones that began before": async (scene) => {
    const path = `${scene.folder}/bomb`;
    Deno.writeFileSync(path, zstdFrame({ window: 7 << 3, blocks: zstdBlocks(8_000) }));
    const { size } = Deno.statSync(path);
    const order = { path, compression: "zstd", narSizeMax: 2 ** 30, turns: TURNS } as const;
    const ended: string[] = [];
    using bombs = new DisposableStack();
    for (let at = 0; at < BOMBS; at++) {
      const bomb = bombs.use(scene.verifier.start(order));
      bomb.measure.then(() => ended.push("bomb"), () => undefined);
      bomb.grown(size, true);
    }
    const small = { ...orderOf(scene), narSizeMax: 2 ** 30, turns: TURNS };
    assert.deepEqual(await wholeMeasure(scene, small), MEASURED);
    assert.deepEqual(ended, []);
  },

  "an end of a file in turns is a rejection, and lets the others go on": async (scene) => {
    const order = { ...orderOf(scene), turns: TURNS };
    const ended = scene.verifier.start(order);
    ended.grown(1, false);
    using other = scene.verifier.start(order);
    ended[Symbol.dispose]();
    ended[Symbol.dispose]();
    await assert.rejects(ended.measure);
    other.grown(Deno.statSync(order.path).size, true);
    assert.deepEqual(await other.measure, MEASURED);
  },

  "a body is decoded, or only looked at": async ({ verifier, files }) => {
    for (const name of files.filter((file) => file !== "shelf.nar")) {
      const { bytes, compression } = fixture(name);
      const order = bodyOf(compression, { bytesMax: FIXTURE_NAR.length });
      const body = await verifier.decode(bytes, order);
      assert.ok(body.kind === "bytes");
      assertSameBytes(body.bytes, FIXTURE_NAR);
      const shape = await verifier.decode(bytes, { ...order, result: "shape" });
      assert.deepEqual(shape, { kind: "shape", isObject: false });
    }
    const json = new Uint8Array(gzipSync('{"version":1}'));
    const order = bodyOf("gzip", { bytesMax: 100, result: "shape" });
    assert.deepEqual(await verifier.decode(json, order), { kind: "shape", isObject: true });
  },

  "a body that is damaged, or larger than it may be, is a result": async ({ verifier }) => {
    const { bytes } = fixture(XZ);
    const bytesMax = FIXTURE_NAR.length;
    const damaged = await verifier.decode(bytes.map((byte) => ~byte), bodyOf("xz", { bytesMax }));
    assert.equal(damaged.kind, "damaged");
    const order = bodyOf("xz", { bytesMax: bytesMax - 1 });
    assert.deepEqual(await verifier.decode(bytes, order), { kind: "too-large" });
  },

  "many bodies at once that unpack to more than they may are results": async ({ verifier }) => {
    const bomb = zstdFrame({ window: 7 << 3, blocks: zstdBlocks(8_000) });
    const order = bodyOf("zstd", { bytesMax: MIB });
    const results = await Promise.all(
      Array.from({ length: 64 }, () => verifier.decode(bomb, order)),
    );
    assert.deepEqual(new Set(results.map(({ kind }) => kind)), new Set(["too-large"]));
  },

  "a body ends with its signal, and the next one is decoded": async ({ verifier }) => {
    const bomb = zstdFrame({ window: 7 << 3, blocks: zstdBlocks(8_000) });
    const gone = new AbortController();
    const order = bodyOf("zstd", { bytesMax: 8 * MIB });
    const ended = verifier.decode(bomb, order, gone.signal);
    gone.abort(new Error("gone"));
    await assert.rejects(ended, /gone/);
    const { kind } = await verifier.decode(bomb, order, new AbortController().signal);
    assert.equal(kind, "too-large");
  },

  "once the threads end, running and later verifications are rejected": async (scene) => {
    const { verifier } = scene;
    const grown = verifier.start(orderOf(scene));
    grown.grown(1, false);
    const waits = verifier.start(orderOf(scene, undefined, "other"));
    const passes = verifier.passThrough(passThroughOf(XZ));
    const write = passes.write(fixture(XZ).bytes.slice());
    const rejected = [grown, waits, passes].map(({ measure }) => assert.rejects(measure));
    scene.end();
    await Promise.all(rejected);
    await write;
    const later = verifier.start(orderOf(scene, undefined, "later"));
    later.grown(1, true);
    await assert.rejects(later.measure);
    const inTurns = verifier.start({ ...orderOf(scene, undefined, "turns"), turns: TURNS });
    inTurns.grown(1, true);
    await assert.rejects(inTurns.measure);
    await assert.rejects(verifier.decode(fixture(XZ).bytes, bodyOf("xz", { bytesMax: MIB })));
    await assert.rejects(verifier.passThrough(passThroughOf(XZ)).measure);
  },
};

function fixture(wanted: string) {
  const found = NAR_FIXTURES.find(({ name }) => name === wanted);
  if (found === undefined) throw new Error(`Cannot find fixture ${wanted}`);
  return found;
}

/** The order for a file that is there: by default the first that the verifier can measure. */
function orderOf({ folder, files }: VerifierScene, from = files[0], name = "file"): VerifyOrder {
  const { bytes, compression } = fixture(from);
  const path = `${folder}/${name}`;
  Deno.writeFileSync(path, bytes);
  return { path, compression, narSizeMax: FIXTURE_NAR.length };
}

function bodyOf(
  compression: Codec | "none",
  more: Pick<BodyOrder, "bytesMax"> & Partial<BodyOrder>,
): BodyOrder {
  assert.ok(compression !== "none");
  return { compression, result: "bytes", turns: TURNS, ...more };
}

function passThroughOf(name: string): PassThroughOrder {
  const { compression } = fixture(name);
  return { compression, narSizeMax: FIXTURE_NAR.length, memoryWaitMs: MEMORY_WAIT_MS };
}

async function wholeMeasure({ verifier }: VerifierScene, order: VerifyOrder): Promise<NarMeasure> {
  using verification = verifier.start(order);
  verification.grown(Deno.statSync(order.path).size, true);
  return await verification.measure;
}

async function writeAll(passes: PassThroughVerification, bytes: Bytes): Promise<void> {
  const length = Math.ceil(bytes.length / 3);
  for (let at = 0; at < bytes.length; at += length) {
    await passes.write(bytes.slice(at, at + length));
  }
}
