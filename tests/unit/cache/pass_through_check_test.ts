import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { NarMeasure, PassThroughOrder } from "../../../src/cache/verify/nar_verifier.ts";
import type { Mismatch } from "../../../src/cache/verify/check_nar.ts";
import { passThroughCheck } from "../../../src/cache/verify/pass_through_check.ts";
import type { NarRow } from "../../../src/metadata/metadata_store.ts";
import { type FileHash, type NarHash, sha256FromDigest } from "../../../src/nix/hash.ts";
import { narName } from "../../../src/nix/nar_name.ts";

const NAR = new TextEncoder().encode("the NAR");
const DIGEST = createHash("sha256").update(NAR).digest();
const NAR_HASH = sha256FromDigest(DIGEST) as NarHash;
const RIGHT: NarMeasure = { kind: "measured", digest: DIGEST, narSize: NAR.length };
const WRONG: NarMeasure = { ...RIGHT, digest: new Uint8Array(32) };

/** A file of the NAR whose hash nobody announced. */
const UNHASHED: NarRow = {
  ...{ name: narName(NAR_HASH, "xz"), compression: "xz" },
  ...{ narHash: NAR_HASH, narSize: NAR.length },
};
const HASHED: NarRow = { ...UNHASHED, fileHash: sha256FromDigest(DIGEST) as FileHash };

/** A check whose decoder takes no byte before `taken`, and then measures `measure`. */
function checkOf(nar: NarRow, measure: Promise<NarMeasure>, taken = Promise.resolve()) {
  const orders: PassThroughOrder[] = [];
  const wrong: Mismatch[] = [];
  let [ends, disposals] = [0, 0];
  const verifier = {
    passThrough(order: PassThroughOrder) {
      orders.push(order);
      const [write, end] = [() => taken, () => void ends++];
      return { write, end, measure, [Symbol.dispose]: () => void disposals++ };
    },
  };
  const check = passThroughCheck({ nar, verifier, wrong: (one) => void wrong.push(one) });
  return { check, orders, wrong, ends: () => ends, disposals: () => disposals };
}

Deno.test("pass-through check: a file that is the NAR needs no decoder", () => {
  const { check, orders } = checkOf({ ...HASHED, compression: "none" }, Promise.resolve(RIGHT));
  assert.deepEqual([check, orders], [undefined, []]);
});

Deno.test("pass-through check: without a file hash the NAR hash decides, and is waited for", async () => {
  const right = checkOf(UNHASHED, Promise.resolve(RIGHT));
  await right.check?.write(NAR);
  await right.check?.end();
  assert.deepEqual(right.orders.map(({ memoryWaitMs }) => memoryWaitMs), [5_000]);
  assert.equal(right.ends(), 1);

  const wrong = checkOf(UNHASHED, Promise.resolve(WRONG));
  await assert.rejects(async () => await wrong.check?.end(), { reason: "nar_hash" });

  const refused = checkOf(UNHASHED, Promise.reject(new Error("no memory")));
  await assert.rejects(async () => await refused.check?.write(NAR), { kind: "unavailable" });
  await assert.rejects(async () => await refused.check?.end(), { kind: "unavailable" });
});

Deno.test("pass-through check: beside a file hash no client waits, and a lie is told", async () => {
  const never = new Promise<void>(() => {});
  const { check, orders, wrong } = checkOf(HASHED, Promise.resolve(WRONG), never);
  await check?.write(NAR);
  await check?.end();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual(orders.map(({ memoryWaitMs }) => memoryWaitMs), [0]);
  assert.deepEqual(wrong.map(({ reason }) => reason), ["nar_hash"]);
});

Deno.test("pass-through check: a decoder that lags over 16 MiB is abandoned", async () => {
  const never = new Promise<void>(() => {});
  const lagging = checkOf(HASHED, new Promise(() => {}), never);
  await lagging.check?.write(new Uint8Array(16 << 20));
  assert.equal(lagging.disposals(), 0);
  await lagging.check?.write(new Uint8Array(1));
  assert.equal(lagging.disposals(), 1);
});

Deno.test("pass-through check: what the decoder has taken is not behind", async () => {
  const quick = checkOf(HASHED, Promise.resolve(RIGHT));
  for (let count = 0; count < 3; count++) await quick.check?.write(new Uint8Array(16 << 20));
  assert.equal(quick.disposals(), 0);
});

Deno.test("pass-through check: a broken file ends the decoder, a whole one its check", async () => {
  const broken = checkOf(HASHED, Promise.resolve(RIGHT));
  await broken.check?.write(NAR);
  broken.check?.[Symbol.dispose]();
  assert.equal(broken.disposals(), 1);

  const whole = checkOf(HASHED, Promise.resolve(RIGHT));
  await whole.check?.write(NAR);
  await whole.check?.end();
  whole.check?.[Symbol.dispose]();
  assert.deepEqual([whole.ends(), whole.disposals()], [1, 0]);
});
