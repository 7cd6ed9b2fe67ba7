import assert from "node:assert/strict";
import { assertInTime, bestOfThree, TooSlow } from "../../support/timed_test.ts";

const atOnce = () => Promise.resolve();

/** A scene that takes these times, one after the other; it counts its runs. */
function sceneOf(...times: readonly number[]) {
  const scene = { runs: 0, run: () => Promise.resolve() };
  scene.run = async () => {
    await Promise.resolve();
    assertInTime(times[scene.runs++] ?? 0, 100);
  };
  return scene;
}

Deno.test("timed: a scene that is in time runs once", async () => {
  const scene = sceneOf(99, 0);
  await bestOfThree(scene.run, atOnce);
  assert.equal(scene.runs, 1);
});

Deno.test("timed: a scene that is in time at the third run holds", async () => {
  const scene = sceneOf(200, 100, 99);
  await bestOfThree(scene.run, atOnce);
  assert.equal(scene.runs, 3);
});

Deno.test("timed: a scene that is too slow three times fails", async () => {
  const scene = sceneOf(200, 200, 150, 0);
  await assert.rejects(
    () => bestOfThree(scene.run, atOnce),
    new TooSlow("it took 150 ms of less than 100"),
  );
  assert.equal(scene.runs, 3);
});

Deno.test("timed: what else fails is not repeated", async () => {
  let runs = 0;
  const scene = () => Promise.reject(new Error(`wrong ${++runs}`));
  await assert.rejects(() => bestOfThree(scene, atOnce), /wrong 1/);
  assert.equal(runs, 1);
});
