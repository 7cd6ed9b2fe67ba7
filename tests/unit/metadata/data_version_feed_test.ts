import assert from "node:assert/strict";
import type { Changed } from "../../../src/metadata/change_feed.ts";
import { DataVersionFeed } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { clock, playRuntime } from "../../../src/runtime/current.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { eventually } from "../../support/eventually.ts";

Deno.test("DataVersionFeed: a change of another process is noticed a second later at most", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  let version = 1;
  const feed = new DataVersionFeed({ dataVersion: () => version, revision: () => version });
  await played.play((async () => {
    const startedAtMs = clock.nowMs();
    const heardAtMs: number[] = [];
    await using _heard = feed.subscribe(() => void heardAtMs.push(clock.nowMs() - startedAtMs));
    await clock.pause(10);
    version++;
    await clock.pause(1_980);
    version++;
    await clock.pause(5_000);
    assert.deepEqual(heardAtMs, [1_000, 2_000]);
  })());
});

Deno.test("DataVersionFeed: changes during failed polls are one notice later", async () => {
  const scene = new Scene();
  const heard: Changed[] = [];
  await using _heard = scene.feed.subscribe((changed) => void heard.push(changed));
  scene.fails = true;
  await scene.become(2);
  await scene.become(3);
  assert.deepEqual(heard, []);
  scene.fails = false;
  await scene.polled();
  assert.deepEqual(heard, ["all"]);
});

Deno.test("DataVersionFeed: a revision that cannot be read is read again later", async () => {
  const scene = new Scene();
  const heard: Changed[] = [];
  await using _heard = scene.feed.subscribe((changed) => void heard.push(changed));
  scene.hasNoRevision = true;
  await scene.become(2);
  assert.deepEqual(heard, []);
  scene.hasNoRevision = false;
  await scene.polled();
  assert.deepEqual(heard, ["all"]);
});

Deno.test("DataVersionFeed: it polls only while there are subscribers", async () => {
  const scene = new Scene();
  await scene.feed.subscribe(() => undefined)[Symbol.asyncDispose]();
  const { looks } = scene;
  scene.version = 2;
  const heard: Changed[] = [];
  await using _heard = scene.feed.subscribe((changed) => void heard.push(changed));
  await scene.polled();
  // One look when the second subscriber came, which makes the change a thing of the past.
  assert.ok(scene.looks >= looks + 2);
  assert.deepEqual(heard, []);
});

/** A feed of a version that the test sets. */
class Scene {
  version = 1;
  fails = false;
  hasNoRevision = false;
  looks = 0;
  readonly feed = new DataVersionFeed({
    dataVersion: () => this.#dataVersion(),
    revision: () => this.#revision(),
    pollEveryMs: 1,
  });

  /** Resolves when a poll that began later has ended. */
  async polled(): Promise<void> {
    const { looks } = this;
    await eventually("it is looked at", () => this.looks > looks + 1);
  }

  async become(version: number): Promise<void> {
    this.version = version;
    await this.polled();
  }

  #dataVersion(): number {
    this.looks++;
    if (this.fails) throw new Error("the disk does not answer");
    return this.version;
  }

  #revision(): number {
    if (this.hasNoRevision) throw new Error("the disk does not answer");
    return this.version;
  }
}
