import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { eventually } from "../support/eventually.ts";
import type { LarderProcess } from "../support/larder_process.ts";
import { testUnless } from "../support/program.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { record } from "../support/reliability_record.ts";
import { ReplicasScene } from "../support/replicas_scene.ts";
import { assertSameBytes } from "../support/same_bytes.ts";

const LEFT_MAX_MS = 60_000;
const PLACES = [0, 1, 2];
/** The value of a lock that another member holds. */
const ANOTHERS = "of another";

testUnless(
  redisMissing,
  "replicas: a holder that wakes after a minute has lost its lease, and harms nothing",
  async () => {
    await using redis = await RedisServer.open();
    await using scene = await ReplicasScene.open({ redis, count: PLACES.length, areApart: true });
    const [holder, ...living] = scene.replicas.larders;
    assert.ok(holder);
    const one = await scene.client(0);
    const others = await Promise.all([1, 1, 2].map((place) => scene.client(place)));
    const [lock = ""] = redis.ask("KEYS", "*:download:nar:*").split("\n");
    assert.match(redis.ask("GET", lock), /"member":/);
    holder.kill("SIGSTOP");
    scene.gate.open();

    const all = await clock.within(Promise.all(others.map((other) => other.all())), LEFT_MAX_MS);
    assert.ok(all, "the rest comes from the next source");
    for (const whole of all) assertSameBytes(whole, scene.bytes);
    assert.equal(scene.narRequests, 2, "however many clients read it");
    const dead = "dead member removed";
    await eventually("a member takes the holder for dead", () => living.some(has(dead)));
    await eventually("its lease is lost", () => redis.ask("GET", lock).trim() === "");
    redis.ask("SET", lock, ANOTHERS);
    holder.kill("SIGCONT");

    assertSameBytes(await one.all(), scene.bytes);
    for (const place of PLACES) {
      const late = await scene.client(place);
      assertSameBytes(await late.all(), scene.bytes);
    }
    assert.equal(scene.narRequests, 2);
    await scene.checkStorage();
    assert.equal(redis.ask("GET", lock).trim(), ANOTHERS, "the lock of another stays");
    const fault = "the larder that downloads a NAR is paused for a minute, and wakes";
    const members = { area: "members", saw: "whole", kept: "nar" } as const;
    record({ ...members, fault: `${fault}; its client` });
    record({ ...members, fault: `${fault}; clients of others` });
  },
);

const has = (message: string) => ({ lines }: LarderProcess) =>
  lines.some(({ msg }) => msg === message);
