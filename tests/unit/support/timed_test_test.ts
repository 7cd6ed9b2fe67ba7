import assert from "node:assert/strict";
import { assertInTime, bestOfThree, TooSlow } from "../../support/timed_test.ts";

const atOnce = () => Promise.resolve();
const fed = () => () => false;
const starved = () => () => true;

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
  await bestOfThree(scene.run, atOnce, fed);
  assert.equal(scene.runs, 1);
});

Deno.test("timed: a scene that is in time at the third run holds", async () => {
  const scene = sceneOf(200, 100, 99);
  await bestOfThree(scene.run, atOnce, fed);
  assert.equal(scene.runs, 3);
});

Deno.test("timed: a scene that is too slow three times fails", async () => {
  const scene = sceneOf(200, 200, 150, 0);
  await assert.rejects(
    () => bestOfThree(scene.run, atOnce, fed),
    new TooSlow("it took 150 ms of less than 100"),
  );
  assert.equal(scene.runs, 3);
});

Deno.test("timed: a run on a starved machine is repeated, and no failure", async () => {
  const scene = sceneOf(200, 200, 200, 200, 99);
  await bestOfThree(scene.run, atOnce, starved);
  assert.equal(scene.runs, 5);
  const hopeless = sceneOf(...Array(9).fill(200));
  await bestOfThree(hopeless.run, atOnce, starved);
  assert.equal(hopeless.runs, 6);
});

Deno.test("timed: a scene that is too slow once on a fed machine fails at last", async () => {
  const scene = sceneOf(...Array(9).fill(200));
  let runs = 0;
  await assert.rejects(() => bestOfThree(scene.run, atOnce, () => () => runs++ > 0), TooSlow);
  assert.equal(scene.runs, 6);
});

Deno.test("timed: any other failure is not repeated", async () => {
  let runs = 0;
  const scene = () => Promise.reject(new Error(`wrong ${++runs}`));
  await assert.rejects(() => bestOfThree(scene, atOnce, fed), /wrong 1/);
  assert.equal(runs, 1);
});
