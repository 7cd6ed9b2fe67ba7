import assert from "node:assert/strict";
import { readStats } from "../support/stats_of.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { atRate, type Scene, type SceneOptions, sceneTest } from "./scene.ts";

const KIB = 1024;
const big = makeStoreObject({ name: "firefox-130", size: 5_000 * KIB });
const small = Array.from({ length: 12 }, (_, seed) => (
  makeStoreObject({ name: "part-1.0", size: 600 * KIB, seed })
));
const objects = [big, ...small];
const SLOWLY = "upstream sends nars slowly: clients wait for them";
const SLOW: SceneOptions = { objects, upstreams: [{ nar: atRate(500 * KIB) }] };

sceneTest(
  "slow nars: people are told the upstream, the path, the rate and the line",
  SLOW,
  async (scene) => {
    const pulled = scene.nar(big);
    await scene.pause(5_000);

    const url = scene.upstreams[0]?.url ?? "";
    const { verdict, upstreams } = await statsOf(scene);
    const [fault] = verdict.faults;
    assert.equal(fault?.level, "warn");
    assert.ok(fault.text.includes(`(firefox-130, ${url}, 500.0 KiB/s)`), fault.text);
    assert.match(fault.text, /^Upstream sends NARs slowly: clients wait for them/);
    assert.ok(fault.hint?.endsWith(`in place of --cache-upstream-url ${url}`), fault.hint ?? "");
    const { path, bytes_per_second } = upstreams[0]?.last_wait ?? {};
    assert.deepEqual([path, bytes_per_second], ["firefox-130", 500 * KIB]);
    const page = textOf(await scene.get("/", { accept: "text/html" }));
    assert.match(page, /waited for it: firefox-130, [\d.]+m?s at 500\.0 KiB\/s/);
    await assertExplained(scene, "comes");
    assert.equal((await pulled).status, 200);
    await scene.downloadsOver();

    await assertExplained(scene, "came");
    assert.equal(scene.logged(SLOWLY).filter(({ level }) => level === "warn").length, 1);
  },
);

sceneTest(
  "slow nars: verdict, downloads, upstreams and explanation have one rate of a download",
  SLOW,
  async (scene) => {
    const pulled = scene.nar(big);
    for (let look = 0; look < 5; look++) {
      await scene.pause(look === 0 ? 4_300 : 1_070);
      const { verdict, upstreams, downloads } = await statsOf(scene);
      const rates = [
        downloads.under_way[0]?.bytes_per_second,
        upstreams[0]?.last_wait?.bytes_per_second,
      ];
      assert.deepEqual(rates, [500 * KIB, 500 * KIB], `look ${look}`);
      assert.ok(verdict.faults[0]?.text.includes(", 500.0 KiB/s)"), verdict.faults[0]?.text);
      const explained = textOf(await scene.get(`/explain?path=${big.storePathHash}`));
      assert.match(explained, /"bytes_per_second":512000,/);
    }
    await pulled;
  },
);

sceneTest(
  "slow nars: the state ends ten seconds after the last one, without a request",
  SLOW,
  async (scene) => {
    await scene.nar(big);
    assert.equal((await statsOf(scene)).verdict.is_well, false);
    await scene.pause(10_000);
    assert.equal((await statsOf(scene)).verdict.is_well, true);
    assert.equal(scene.logged("no client waits for the upstream's nars any more").length, 1);
  },
);

sceneTest("slow nars: many that each take a moment are slow together", SLOW, async (scene) => {
  for (const object of small.slice(0, 4)) await scene.nar(object);
  assert.equal((await statsOf(scene)).verdict.is_well, false);
});

sceneTest("slow nars: one slow moment is nothing", SLOW, async (scene) => {
  await scene.nar(small[0]);
  assert.equal((await statsOf(scene)).verdict.is_well, true);
});

sceneTest(
  "slow nars: files that share a quick line are not slow, however many come at once",
  { objects, upstreams: [{ nar: atRate(120 * KIB) }] },
  async (scene) => {
    await Promise.all(small.map((object) => scene.nar(object)));
    assert.equal(scene.logged(SLOWLY).length, 0);
    assert.equal((await statsOf(scene)).verdict.is_well, true);
  },
);

sceneTest(
  "slow nars: a quick one has its rate in its explanation, and no advice",
  { objects, upstreams: [{ nar: atRate(10_000 * KIB) }] },
  async (scene) => {
    await scene.nar(big);
    await scene.downloadsOver();
    const explained = textOf(await scene.get(`/explain?path=${big.storePathHash}`));
    assert.match(explained, /Its NAR file came at (9|10)\S* MiB\/s from http/);
    assert.doesNotMatch(explained, /nearer mirror/);
  },
);

/** Its sentences have the rate and the line to change. */
async function assertExplained(scene: Scene, verb: "comes" | "came"): Promise<void> {
  const explained = textOf(await scene.get(`/explain?path=${big.storePathHash}`));
  const slow = /(\S+) at 50\d\.\d KiB\/s from http:\/\/u0.*--cache-upstream-url http:\/\/u0/;
  assert.equal(slow.exec(explained)?.[1], verb);
}

const textOf = ({ bytes }: { readonly bytes: Uint8Array }) => new TextDecoder().decode(bytes);

async function statsOf(scene: Scene) {
  const { bytes } = await scene.get("/stats");
  return await readStats(new Response(new Uint8Array(bytes)));
}
