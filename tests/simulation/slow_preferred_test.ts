import assert from "node:assert/strict";
import { readStats } from "../support/stats_of.ts";
import { makeStoreObject } from "../support/store_object.ts";
import {
  after,
  type Alteration,
  type Behaviour,
  never,
  type Scene,
  type SceneOptions,
  sceneTest,
  text,
} from "./scene.ts";

const objects = Array.from({ length: 40 }, (_, seed) => makeStoreObject({ name: "thing", seed }));
const FEW = objects.slice(0, 5);
const LOG_PATH = `/log/${"0".repeat(32)}-thing.drv`;
const PATIENCE_MS = 300;

const logs: Alteration = (answer, request) =>
  request.url.pathname === LOG_PATH ? text("built\n")(answer, request) : answer;
const slowLogs: Alteration = (answer, request) =>
  request.url.pathname === LOG_PATH ? never(answer, request) : answer;
const SLOW: Behaviour = { narinfo: never, document: slowLogs };

/** A slow upstream that is preferred and has nothing, and a quick one that has all. */
const OPTIONS: SceneOptions = {
  objects,
  upstreams: [{ objects: [], priority: 10, ...SLOW }, { priority: 40, document: logs }],
};

sceneTest(
  "slow preferred: another's path is served after 300 ms, and people are told",
  OPTIONS,
  async (scene) => {
    for (const { storePathHash } of FEW) {
      const { status, headMs } = await scene.get(`/${storePathHash}.narinfo`);
      assert.deepEqual([status, headMs], [200, PATIENCE_MS]);
    }

    const warnings = scene.log.filter(({ level, upstream }) => (
      level === "warn" && upstream === scene.upstreams[0]?.url
    ));
    assert.deepEqual(warnings.map(({ msg }) => msg), ["upstream is slow: clients wait for it"]);
    const url = scene.upstreams[0]?.url;
    const line = `lower its priority: --cache-upstream-url '${url}?priority=50', or remove it`;
    assert.equal(warnings[0]?.["hint"], line);
    assert.equal(warnings[0]?.["name"], "thing");
    const { upstreams, verdict } = await statsOf(scene);
    assert.equal(verdict.is_well, false);
    assert.equal(verdict.faults[0]?.hint, line);
    assert.match(verdict.faults[0]?.text ?? "", /clients wait for it \(thing, http:\/\/u0\)/);
    const { count, late, longest_ms } = upstreams[0]?.waits ?? {};
    assert.deepEqual([count, late, longest_ms], [FEW.length, FEW.length, PATIENCE_MS]);
    const page = textOf(await scene.get("/", { accept: "text/html" }));
    assert.match(
      page,
      /Clients waited for it 5 times, 300 ms on average and 300 ms at most, 5 times/,
    );
    const explained = textOf(await scene.get(`/explain?path=${FEW[0]?.storePathHash}`));
    assert.match(explained, /had not answered at .* The client waited 300 ms for it.*\?priority=N/);
  },
);

sceneTest(
  "slow preferred: a document of another is served after 300 ms",
  OPTIONS,
  async (scene) => {
    const { status, headMs } = await scene.get(LOG_PATH);
    assert.deepEqual([status, headMs], [200, PATIENCE_MS]);
    const { upstreams } = await statsOf(scene);
    assert.equal(upstreams[0]?.waits.late, 1);
  },
);

sceneTest(
  "slow preferred: it is waited for while no other has the path",
  { objects, upstreams: [{ narinfo: after(5_000) }, { objects: [] }] },
  async (scene) => {
    const { status, headMs } = await scene.get(`/${FEW[0]?.storePathHash}.narinfo`);
    assert.deepEqual([status, headMs], [200, 5_000]);
    const { upstreams } = await statsOf(scene);
    assert.deepEqual(upstreams.map(({ waits }) => waits.count), [0, 0]);
  },
);

sceneTest("slow preferred: the warning ends once it is quick again", OPTIONS, async (scene) => {
  const [early, later] = [objects.slice(0, 5), objects.slice(5)];
  for (const { storePathHash } of early) await scene.get(`/${storePathHash}.narinfo`);
  assert.equal(scene.logged("upstream is slow: clients wait for it").length, 1);
  scene.behave(0);
  for (const { storePathHash } of later) await scene.get(`/${storePathHash}.narinfo`);
  assert.equal(scene.logged("upstream is quick enough again").length, 1);
});

const textOf = ({ bytes }: { readonly bytes: Uint8Array }) => new TextDecoder().decode(bytes);

async function statsOf(scene: Scene) {
  const { bytes } = await scene.get("/stats");
  return await readStats(new Response(new Uint8Array(bytes)));
}

sceneTest(
  "slow upstream: people are told which path it made wait, and what to change",
  { objects, upstreams: [{ narinfo: after(5_000) }] },
  async (scene) => {
    for (const { storePathHash } of FEW) await scene.get(`/${storePathHash}.narinfo`);

    const { upstreams, verdict } = await statsOf(scene);
    const url = scene.upstreams[0]?.url ?? "";
    const [fault] = verdict.faults;
    assert.match(fault?.text ?? "", /Upstream answers slowly: clients wait for it \(thing, /);
    assert.ok(fault?.text.includes(url), fault?.text);
    assert.equal(
      fault?.hint,
      `take --cache-upstream-url ${url} out, or name a nearer mirror there`,
    );
    const [one] = upstreams;
    assert.deepEqual(one?.slow_answers, { count: FEW.length, longest_ms: 5_000 });
    assert.deepEqual([one?.last_wait?.path, one?.last_wait?.ms], ["thing", 5_000]);
    const explained = textOf(await scene.get(`/explain?path=${FEW[0]?.storePathHash}`));
    assert.match(explained, /It took 5(\.0)? ?s to answer: .*--cache-upstream-url/);
  },
);
