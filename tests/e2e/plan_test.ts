import assert from "node:assert/strict";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { eventually } from "../support/eventually.ts";
import { larderProcess, LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects } from "../support/nix_store_objects.ts";
import { tempFolder } from "../support/temp_folder.ts";

const OBJECTS = [
  { name: "bottom" },
  { name: "left", references: ["bottom"], content: { bytes: 3_000_000 } },
  { name: "right", references: ["bottom", "right"] },
  { name: "top", references: ["left", "right"] },
] as const;

interface Stats {
  readonly requests: Record<"nar" | "narinfo", Record<"hits" | "misses" | "commands", number>>;
}

async function larder(...words: readonly string[]): Promise<{ status: number; out: string }> {
  await using child = larderProcess(words);
  const { code, stdout, stderr } = await child.output();
  const err = new TextDecoder().decode(stderr);
  assert.equal(err, "");
  return { status: code, out: new TextDecoder().decode(stdout) };
}

nixTest("larder plan, then the pull of a real nix: the numbers agree", async () => {
  using maker = new NixClient();
  using folder = tempFolder();
  const { top, paths } = await addObjects(maker, OBJECTS);
  const key = await maker.makeKey("upstream-1");
  await maker.copyTo(folder.path, top, { compression: "zstd", key });
  await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
  await using server = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    ...LONG_TIMEOUTS,
  });
  const pull = async (path: string) => {
    using client = new NixClient();
    await client.copyFrom(path, { from: [server.url], trust: [upstream.publicKey] });
  };
  const plan = async () => {
    const { status, out } = await larder("plan", top, "--json", "--server", server.url);
    assert.equal(status, 0);
    return JSON.parse(out);
  };
  const counts = async () => {
    const { requests: { nar, narinfo } }: Stats = await (await fetch(`${server.url}/stats`)).json();
    return [nar.hits, nar.misses, narinfo.hits, narinfo.misses];
  };
  const fetched = () => Object.keys(upstream.timesAsked).filter((path) => path.startsWith("/nar/"));

  await pull(paths.find((path) => path.endsWith("-bottom")) ?? "");
  const before = { counts: await counts(), fetched: fetched() };
  const planned = await plan();
  assert.deepEqual([planned.paths, planned.here.paths, planned.upstream.paths], [4, 1, 3]);
  assert.deepEqual({ counts: await counts(), fetched: fetched() }, before, "no NAR and no count");

  await pull(top);
  const sizes = new Map(
    [...Deno.readDirSync(`${folder.path}/nar`)].map(({ name }) => [
      `/nar/${name}`,
      Deno.statSync(`${folder.path}/nar/${name}`).size,
    ]),
  );
  const pulled = fetched().filter((path) => !before.fetched.includes(path));
  const bytes = pulled.reduce((sum, path) => sum + (sizes.get(path) ?? NaN), 0);
  assert.deepEqual([pulled.length, bytes], [planned.upstream.nars, planned.upstream.bytes]);
  await eventually("all of it is here", async () => (await plan()).here.paths === 4);
});
