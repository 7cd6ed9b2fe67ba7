import assert from "node:assert/strict";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { NixClient, type NixKey, nixTest } from "../support/nix_client.ts";
import { addObjects, storePathOf } from "../support/nix_store_objects.ts";
import { tempFolder } from "../support/temp_folder.ts";

nixTest(
  "a closure whose paths lie in two upstreams is pulled whole, by their keys or ours",
  async () => {
    using two = await twoHalves();
    await using lower = new DirectoryUpstream(two.lowerFolder, two.lowerKey.publicKey);
    await using upper = new DirectoryUpstream(two.upperFolder, two.upperKey.publicKey);
    await using larder = await startLarder({
      "cache-upstream-url": [lower.url, upper.url],
      "cache-upstream-public-key": [lower.publicKey, upper.publicKey],
      ...LONG_TIMEOUTS,
    });
    const ownKey = (await (await fetch(`${larder.url}/pubkey`)).text()).trim();

    for (const trust of [[lower.publicKey, upper.publicKey], [ownKey]]) {
      using client = new NixClient();
      await client.copyFrom(two.top, { from: [larder.url], trust });
      assert.deepEqual(await client.closureOf(two.top), [two.bottom, two.top].sort());
      await lower.stop();
      await upper.stop();
    }
    for (const upstream of [lower, upper]) {
      const nars = Object.entries(upstream.timesAsked).filter(([path]) => path.startsWith("/nar/"));
      const own = upstream.paths().filter((path) => path.startsWith("/nar/"));
      assert.deepEqual(nars, own.map((path) => [path, 1]));
    }
  },
);

nixTest("paths that larder answers with 404 come from the client's next substituter", async () => {
  using two = await twoHalves();
  await using lower = new DirectoryUpstream(two.lowerFolder, two.lowerKey.publicKey);
  await using second = new DirectoryUpstream(two.upperFolder, two.upperKey.publicKey);
  await using larder = await startLarder({
    "cache-upstream-url": lower.url,
    "cache-upstream-public-key": lower.publicKey,
    ...LONG_TIMEOUTS,
  });
  using client = new NixClient();
  const trust = [lower.publicKey, second.publicKey];
  await client.realise(two.top, { from: [larder.url, second.url], trust });
  assert.deepEqual(await client.closureOf(two.top), [two.bottom, two.top].sort());
  // Each half came from where it is.
  const isNar = (path: string) => path.startsWith("/nar/");
  assert.deepEqual(Object.keys(lower.timesAsked).filter(isNar), lower.paths().filter(isNar));
  assert.deepEqual(Object.keys(second.timesAsked).filter(isNar), second.paths().filter(isNar));
});

nixTest("with larder's only upstream down a client gets everything from its next one", async () => {
  using two = await twoHalves();
  await using down = new DirectoryUpstream(two.wholeFolder, two.upperKey.publicKey);
  await using second = new DirectoryUpstream(two.wholeFolder, two.upperKey.publicKey);
  await down.stop();
  await using larder = await startLarder({
    "cache-upstream-url": down.url,
    "cache-upstream-public-key": down.publicKey,
  });
  using client = new NixClient();
  const trust = [second.publicKey];
  await client.realise(two.top, { from: [larder.url, second.url], trust });
  assert.deepEqual(await client.closureOf(two.top), [two.bottom, two.top].sort());
});

nixTest("a client that trusts neither the upstream's key nor larder's takes nothing", async () => {
  await pullTrusting("upper", /signature/);
});

nixTest("a closure that none of larder's keys has signed is not there for a client", async () => {
  await pullTrusting("lower", /is required, but there is no substituter|does not exist/);
});

/** Signed by the upper key; larder trusts `larderTrusts`, the client the lower key. */
async function pullTrusting(larderTrusts: "upper" | "lower", complaint: RegExp): Promise<void> {
  using two = await twoHalves();
  await using upstream = new DirectoryUpstream(two.wholeFolder, two.upperKey.publicKey);
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": two[`${larderTrusts}Key`].publicKey,
    ...LONG_TIMEOUTS,
  });
  using client = new NixClient();
  const from = { from: [larder.url], trust: [two.lowerKey.publicKey] };
  await assert.rejects(client.copyFrom(two.top, from), { message: complaint });
  await assert.rejects(client.closureOf(two.top));
}

interface TwoHalves extends Disposable {
  /** Refers to `bottom`. */
  readonly top: string;
  readonly bottom: string;
  /** A binary cache with `bottom` alone. */
  readonly lowerFolder: string;
  readonly lowerKey: NixKey;
  /** A binary cache with `top` alone. */
  readonly upperFolder: string;
  readonly upperKey: NixKey;
  /** A binary cache with both, signed by the upper one's key. */
  readonly wholeFolder: string;
}

async function twoHalves(): Promise<TwoHalves> {
  using resources = new DisposableStack();
  const maker = resources.use(new NixClient());
  const lowerFolder = resources.use(tempFolder()).path;
  const upperFolder = resources.use(tempFolder()).path;
  const wholeFolder = resources.use(tempFolder()).path;
  const { top } = await addObjects(maker, [
    { name: "bottom" },
    { name: "top", references: ["bottom"] },
  ]);
  const bottom = storePathOf("bottom");
  const lowerKey = await maker.makeKey("lower-1");
  const upperKey = await maker.makeKey("upper-1");
  await maker.copyTo(lowerFolder, bottom, { compression: "xz", key: lowerKey });
  await maker.copyTo(wholeFolder, top, { compression: "zstd", key: upperKey });
  await maker.copyTo(upperFolder, top, { compression: "zstd", key: upperKey });
  removeFrom(upperFolder, bottom);
  const owned = resources.move();
  return {
    ...{ top, bottom, lowerFolder, lowerKey, upperFolder, upperKey, wholeFolder },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** Nix writes whole closures only: this removes the paths that are too many. */
function removeFrom(folder: string, storePath: string): void {
  const narinfo = `${folder}/${/[^/]{32}(?=-)/.exec(storePath)?.[0]}.narinfo`;
  const [, url = ""] = /^URL: (.*)$/m.exec(Deno.readTextFileSync(narinfo)) ?? [];
  Deno.removeSync(`${folder}/${url}`);
  Deno.removeSync(narinfo);
}
