import assert from "node:assert/strict";
import { Failure } from "../../../src/base/failure.ts";
import { newStoredName } from "../../../src/nix/stored_name.ts";
import { WatchedNarStore } from "../../../src/storage/watched_nar_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { MemoryNarStore } from "../../support/memory_nar_store.ts";
import { narOf } from "../../support/metadata_rows.ts";
import { STAYS } from "../../support/staying_client.ts";

const at = newStoredName(narOf("a").name);

Deno.test("watched store: an outage is logged once, and its end", async () => {
  const scene = new Scene();
  scene.failsAfterMs = 10;
  for (let times = 0; times < 3; times++) await assert.rejects(scene.store.open(at, STAYS));
  scene.failsAfterMs = undefined;
  for (let times = 0; times < 2; times++) await scene.store.open(at, STAYS);

  assert.equal(scene.asked, 5);
  assert.deepEqual(scene.logged(), [
    "error nar store unavailable: nars pass through",
    "info nar store available again",
  ]);
});

Deno.test("watched store: one request in five seconds waits for a silent one", async () => {
  const scene = new Scene();
  scene.failsAfterMs = 5_000;
  await assert.rejects(scene.store.open(at, STAYS), /no answer/);
  const askedBefore = scene.asked;
  for (let times = 0; times < 4; times++) {
    await assert.rejects(scene.store.open(at, STAYS), { kind: "unavailable" });
    scene.nowMs += 1_000;
  }
  assert.equal(scene.asked, askedBefore);
  scene.nowMs += 1_000;
  scene.failsAfterMs = undefined;
  assert.equal(await scene.store.open(at, STAYS), undefined);
  assert.equal(scene.asked, askedBefore + 1);
});

Deno.test("watched store: a client that leaves is no outage", async () => {
  const scene = new Scene();
  const signal = AbortSignal.abort(new Error("the client left"));
  await assert.rejects(scene.store.open(at, { signal }), /the client left/);
  assert.deepEqual(scene.logged(), []);
});

Deno.test("watched store: a probe ends an outage once the store takes and gives a file again", async () => {
  const scene = new Scene();
  let trials = 0;
  const trial = async () => {
    trials++;
    await scene.store.open(at, STAYS);
  };
  await scene.store.probe(trial);
  assert.equal(trials, 0, "a store that is well needs no trial");
  scene.failsAfterMs = 5_000;
  await assert.rejects(scene.store.open(at, STAYS));
  await scene.store.probe(trial);
  assert.deepEqual([trials, scene.logged().length], [1, 1]);
  scene.failsAfterMs = undefined;
  await scene.store.probe(trial);
  assert.deepEqual(scene.logged(), [
    "error nar store unavailable: nars pass through",
    "info nar store available again",
  ]);
});

Deno.test("watched store: one whose mark is not read is silent, until it answers", async () => {
  const scene = new Scene();
  const known = () => [scene.store.isAway, scene.store.isSilent];
  const probe = () => scene.store.probe(() => Promise.resolve());
  scene.isMarkLost = true;
  await probe();
  assert.deepEqual(known(), [false, false], "one failure may pass");
  scene.nowMs += 2_000;
  assert.deepEqual(known(), [true, true], "no put has to hang for it");
  await scene.store.open(at, STAYS);
  assert.deepEqual(known(), [false, false], "it answers");

  await probe();
  scene.nowMs += 2_000;
  assert.deepEqual(known(), [true, true]);
  scene.isMarkLost = false;
  await probe();
  assert.deepEqual(known(), [false, false]);
});

/** A store that fails, or not, as a test says, with a clock that only the test moves. */
class Scene {
  nowMs = 0;
  asked = 0;
  failsAfterMs: number | undefined;
  isMarkLost = false;
  readonly #lines: { readonly level: string; readonly msg: string }[] = [];
  readonly #inner = new MemoryNarStore();
  readonly store = new WatchedNarStore(
    Object.assign(Object.create(this.#inner), {
      open: (...args: Parameters<MemoryNarStore["open"]>) => {
        this.asked++;
        if (this.failsAfterMs === undefined) return this.#inner.open(...args);
        this.nowMs += this.failsAfterMs;
        return Promise.reject(new Failure("unavailable", "Cannot open NAR file: no answer"));
      },
    }),
    {
      mark: async () => {
        if (this.isMarkLost) throw new Failure("unavailable", "Cannot read the mark: no answer");
      },
      log: createLogger("info", { write: (line) => void this.#lines.push(JSON.parse(line)) }),
      nowMs: () => this.nowMs,
    },
  );

  logged(): readonly string[] {
    return this.#lines.map(({ level, msg }) => `${level} ${msg}`);
  }
}
