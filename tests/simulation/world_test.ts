import assert from "node:assert/strict";
import { drawOptions, MEMBER_FAULTS, runWorld, type WorldOptions } from "./world.ts";
import { UPSTREAM_FAULTS } from "./world_upstream.ts";

const MINUTE_MS = 60_000;

/** Small, and with each kind of fault. */
const HARMED: WorldOptions = {
  ...drawOptions(1),
  ...{ seed: 7, members: 2, upstreams: 2, clients: 2, objects: 8, objectBytesMax: 20_000 },
  limitBytes: Infinity,
  busyMs: 5 * MINUTE_MS,
  faultEveryMs: 10_000,
  ...{ pushers: 0, operates: false, recompresses: false },
  upstreamFaults: UPSTREAM_FAULTS,
  memberFaults: MEMBER_FAULTS,
};

/** Without locks, each member would ask. */
const CROWD: WorldOptions = {
  ...HARMED,
  ...{ members: 3, upstreams: 1, clients: 6, inCrowds: true, objectBytesMax: 200_000 },
  ...{ busyMs: 80_000, faultEveryMs: Infinity, prefetches: false },
};

const PUSHED: WorldOptions = { ...HARMED, pushers: 1 };

Deno.test("simulation: a calm world keeps each promise, and asks for each path once", async () => {
  const calm = { ...HARMED, faultEveryMs: Infinity, members: 1, upstreams: 1, prefetches: false };
  const { violations, pulls, repeated } = await runWorld(calm);
  assert.deepEqual(violations, []);
  assert.deepEqual(repeated, []);
  assert.ok(pulls.whole > 0);
  assert.deepEqual({ ...pulls, whole: 0, left: 0 }, { whole: 0, absent: 0, broken: 0, left: 0 });
});

Deno.test("simulation: a calm world keeps each promise while its files become zstd", async () => {
  const calm = { ...HARMED, faultEveryMs: Infinity, members: 1, upstreams: 1, recompresses: true };
  const { violations, pulls, log } = await runWorld(calm);
  assert.deepEqual(violations, []);
  assert.ok(pulls.whole > 0);
  assert.ok(log.some((line) => /GET.*\.nar\.zst/.test(line)), "a client pulls zstd");
});

Deno.test("simulation: a crowd at three members costs an upstream one request a path", async () => {
  const { violations, pulls, repeated } = await runWorld(CROWD);
  assert.deepEqual(violations, []);
  assert.ok(pulls.whole > 30);
  assert.deepEqual(repeated, []);
});

Deno.test("simulation: a calm world keeps what is uploaded, in parts and by two at once", async () => {
  const calm = { ...HARMED, faultEveryMs: Infinity, memberFaults: [], pushers: 2 };
  const { violations, log } = await runWorld(calm);
  assert.deepEqual(violations, []);
  assert.ok(log.some((line) => / p[01] PUT \S+\.narinfo at m[01]: 201$/.test(line)));
});

Deno.test("simulation: pins hold while an operator deletes, runs gc and changes the limit", async () => {
  const operated = { ...HARMED, memberFaults: [], operates: true, busyMs: 60 * MINUTE_MS };
  const { violations, log } = await runWorld(operated);
  assert.deepEqual(violations, []);
  const did = (what: string) => log.filter((line) => line.includes(` operator ends: ${what}`));
  assert.ok(did("gc, 200").length > 0);
  assert.ok(did("delete nar, 200").length + did("delete narinfo, 200").length > 0);
  assert.ok(did("other limit, ").length > 0);
  assert.ok(log.some((line) => / operator POST \S+: 200$/.test(line)), "something is pinned");
});

Deno.test("simulation: the same seed gives the same events, and another seed others", async () => {
  const [one, again, other] = [
    await runWorld(PUSHED),
    await runWorld(PUSHED),
    await runWorld({ ...PUSHED, seed: 8 }),
  ];
  assert.deepEqual(again.log, one.log);
  assert.equal(again.digest, one.digest);
  assert.notEqual(other.digest, one.digest);
});
