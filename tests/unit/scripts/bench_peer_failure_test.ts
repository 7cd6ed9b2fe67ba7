import assert from "node:assert/strict";
import { launchUnlessPeerFails, survivePeer } from "../../../scripts/bench/peer_failure.ts";
import { LARDER, type Launcher, PEER, type Server } from "../../../scripts/bench/server.ts";

const SERVER: Omit<Server, "name"> = {
  url: "http://127.0.0.1:9",
  residentBytes: () => 0,
  residentParts: () => ({ files: 0, own: 0 }),
  peakBytes: () => 0,
  cpuSeconds: () => 0,
  cpuTimes: () => ({ threads: new Map(), kernelSeconds: 0 }),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

function benchOf(names: readonly string[]) {
  return {
    servers: names.map((name): Server => ({ ...SERVER, name })),
    launchers: names.map(launcherOf),
  };
}

function launcherOf(name: string): Launcher {
  return { name, launch: () => Promise.reject(new Error(`${name} cannot start`)) };
}

Deno.test("a measure that another cache breaks runs again without it", async () => {
  const runs: (readonly string[])[] = [];
  const survived = await survivePeer(benchOf([LARDER, PEER]), ({ servers, launchers }) => {
    runs.push([...servers, ...launchers].map(({ name }) => name));
    if (servers.some(({ name }) => name === PEER)) return Promise.reject(new Error("404"));
    return Promise.resolve("measured");
  });
  assert.deepEqual(survived, { value: "measured", isPeerBroken: true });
  assert.deepEqual(runs, [[LARDER, PEER, LARDER, PEER], [LARDER, LARDER]]);
});

Deno.test("a measure runs without another cache that no longer starts", async () => {
  const { servers } = benchOf([LARDER]);
  const bench = { servers, launchers: benchOf([LARDER, PEER]).launchers };
  const survived = await survivePeer(bench, ({ launchers }) => {
    if (launchers.some(({ name }) => name === PEER)) return Promise.reject(new Error("ended"));
    return Promise.resolve("measured");
  });
  assert.deepEqual(survived, { value: "measured", isPeerBroken: true });
});

Deno.test("a measure that fails without another cache ends the bench", async () => {
  for (const names of [[LARDER], [LARDER, PEER]]) {
    await assert.rejects(
      survivePeer(benchOf(names), () => Promise.reject(new Error("larder: 404"))),
      /larder: 404/,
    );
  }
});

Deno.test("another cache that cannot start is left out, and larder is not", async () => {
  assert.equal(await launchUnlessPeerFails(launcherOf(PEER), "/tmp"), undefined);
  await assert.rejects(launchUnlessPeerFails(launcherOf(LARDER), "/tmp"), /cannot start/);
});
