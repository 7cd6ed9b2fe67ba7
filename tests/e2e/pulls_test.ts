import assert from "node:assert/strict";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { eventually } from "../support/eventually.ts";
import { larderProcess, LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects } from "../support/nix_store_objects.ts";
import { tempFolder } from "../support/temp_folder.ts";

const OBJECTS = [
  { name: "bottom" },
  { name: "left", references: ["bottom"], content: { bytes: 2_000_000 } },
  { name: "right", references: ["bottom"] },
  { name: "top", references: ["left", "right"], content: { bytes: 1_000_000 } },
] as const;

/** What the second upstream lets each request wait. */
const NARINFO_MS = 300;
const NAR_MS = 1_500;

interface Shown {
  readonly id: string;
  readonly sentence: string;
  readonly seconds: number;
  readonly waiting_seconds: number;
  readonly waited_for: readonly {
    readonly upstream: string | null;
    readonly seconds: number;
    readonly paths: number;
  }[];
}

async function larder(...words: readonly string[]): Promise<string> {
  await using child = larderProcess(words);
  const { code, stdout, stderr } = await child.output();
  assert.deepEqual([code, new TextDecoder().decode(stderr)], [0, ""]);
  return new TextDecoder().decode(stdout);
}

nixTest(
  "pulls: a real nix that waited for a slow second upstream: page, command and JSON name it",
  async () => {
    using maker = new NixClient();
    const folders = [tempFolder(), tempFolder()] as const;
    using first = folders[0];
    using second = folders[1];
    const { top, paths } = await addObjects(maker, OBJECTS);
    const key = await maker.makeKey("upstream-1");
    const bottom = paths.find((path) => path.endsWith("-bottom")) ?? "";
    const options = { compression: "zstd", key };
    await maker.copyTo(first.path, bottom, options);
    await maker.copyTo(second.path, top, options);
    await using quick = new DirectoryUpstream(first.path, key.publicKey);
    await using slow = new DirectoryUpstream(
      ...[second.path, key.publicKey] as const,
      (path) => path.startsWith("/nar/") ? NAR_MS : path.endsWith(".narinfo") ? NARINFO_MS : 0,
    );
    await using server = await startLarder({
      "cache-upstream-url": [quick.url, slow.url],
      "cache-upstream-public-key": key.publicKey,
      // Else a slow machine has them all before Nix asks for one.
      "cache-prefetch-nar-max-size": "0",
      ...LONG_TIMEOUTS,
    });
    const get = async (path: string, accept: string) =>
      await (await fetch(`${server.url}${path}`, { headers: { accept } })).text();
    const hashOf = (path: string) => path.slice("/nix/store/".length).slice(0, 32);
    const all = () => paths.every((path) => (slow.timesAsked[`/${hashOf(path)}.narinfo`] ?? 0) > 0);

    // One narinfo leads the prefetch to all others, long before Nix asks for them.
    const command = { headers: { "x-larder-command": "warm" } };
    await (await fetch(`${server.url}/${hashOf(top)}.narinfo`, command)).text();
    await eventually("the narinfos are prefetched", all);
    using client = new NixClient();
    await client.copyFrom(top, { from: [server.url], trust: [key.publicKey] });

    const [pull]: readonly Shown[] = JSON.parse(await get("/pulls", "application/json"));
    const { host } = new URL(slow.url);
    assert.ok(pull, "it is shown while it may go on");
    const [most] = pull.waited_for;
    assert.equal(most?.upstream, host, JSON.stringify(pull));
    assert.ok(most.seconds * 2 > pull.waiting_seconds, pull.sentence);
    assert.ok(pull.waited_for.every(({ upstream }) => upstream !== null), pull.sentence);
    const told = new RegExp(
      `[\\d.]+ m?s waited for ${host.replaceAll(".", "\\.")} \\([1-4] paths?\\)`,
    );
    assert.match(pull.sentence, told);
    assert.match((await larder("pulls", "--server", server.url)).replaceAll(/\n +/g, " "), told);
    for (const path of ["/", "/pulls", `/pulls/${pull.id}`]) {
      assert.match(await get(path, "text/html"), told, path);
    }
  },
);
