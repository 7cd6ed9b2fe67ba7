import assert from "node:assert/strict";
import { hasZstdEncoder } from "../../src/cache/recompress/encode_nar.ts";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { eventually } from "../support/eventually.ts";
import { LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects, SHAPES, storePathOf } from "../support/nix_store_objects.ts";
import { testWhere } from "../support/program.ts";
import { runLarder } from "../support/run_larder.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { THREADS_UNKNOWN, threadsOf } from "../support/threads_of.ts";

const lacksEncoder = hasZstdEncoder() ? "" : "this Deno writes no zstd";

/** A diamond whose bottom has many blocks of bzip2. */
const OBJECTS = [
  { name: "bottom", content: { bytes: 300_000 } },
  ...(SHAPES["diamond"] ?? []).slice(1),
];

const NAME = "recompression: a Nix that remembers the former narinfos pulls on, and a new one";

if (lacksEncoder === "") nixTest(NAME, pullOn);
else testWhere(lacksEncoder, NAME, pullOn);

async function pullOn(): Promise<void> {
  using maker = new NixClient();
  using folder = tempFolder();
  const { top, paths } = await addObjects(maker, OBJECTS);
  const key = await maker.makeKey("upstream-1");
  // Each leaves what is there.
  await maker.copyTo(folder.path, storePathOf("bottom"), { compression: "bzip2", key });
  await maker.copyTo(folder.path, storePathOf("left"), { compression: "none", key });
  await maker.copyTo(folder.path, top, { compression: "xz", key });
  await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": key.publicKey,
    "cache-recompress": "on",
    ...LONG_TIMEOUTS,
  });
  assert.ok(upstream.paths().some((path) => path.endsWith(".nar.bz2")));
  const trust = { from: [larder.url], trust: [key.publicKey] };
  using rememberer = new NixClient();
  await rememberer.run("nix", ["path-info", "--store", larder.url, ...paths]);
  using first = new NixClient();
  await first.copyFrom(top, trust);
  const isZstd = async (path: string) => {
    const hash = path.slice("/nix/store/".length, "/nix/store/".length + 32);
    const text = await (await fetch(`${larder.url}/${hash}.narinfo`)).text();
    return text.includes("\nCompression: zstd\n");
  };
  // It looks a minute after its start: as long as `eventually` waits.
  const nearMs = performance.now() + 45_000;
  await eventually("the look is near", () => performance.now() > nearMs);
  await eventually("all NARs are kept in zstd", async () => {
    return (await Promise.all(paths.map(isZstd))).every((one) => one);
  });
  await upstream.stop();
  if (THREADS_UNKNOWN === "") {
    const slow = threadsOf(larder.pid).filter(({ nice }) => nice === 19);
    assert.ok(slow.some(({ name }) => name.startsWith("worker")), "the encoder goes last");
  }

  await rememberer.copyFrom(top, trust);
  assert.deepEqual(await rememberer.closureOf(top), paths);
  using next = new NixClient();
  await next.copyFrom(top, trust);
  assert.deepEqual(await next.closureOf(top), paths);
  const checked = await runLarder([
    "fsck",
    "--verify-content",
    "--cache-storage-local",
    larder.storage,
  ]);
  assert.equal(checked.status, 0, checked.err);
}

testWhere(
  hasZstdEncoder() ? "this Deno writes zstd" : "",
  "recompression: on without an encoder ends the start, and names the Denos that have one",
  async () => {
    using folder = tempFolder();
    const ran = await runLarder([
      "serve",
      "--cache-recompress=on",
      "--server-addr=127.0.0.1:0",
      "--cache-storage-local",
      folder.path,
    ]);
    assert.equal(ran.status, 2);
    assert.match(
      ran.err,
      /--cache-recompress=on: expected a Deno that writes zstd, from 2\.7\.0 on/,
    );
  },
);
