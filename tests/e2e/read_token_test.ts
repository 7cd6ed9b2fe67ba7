import assert from "node:assert/strict";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects, SHAPES } from "../support/nix_store_objects.ts";
import { tempFolder } from "../support/temp_folder.ts";

const TOKEN = "larder-s3same";

nixTest("read token: a Nix pulls by its netrc file, and gets nothing without it", async () => {
  using maker = new NixClient();
  using folder = tempFolder();
  const { top, paths } = await addObjects(maker, SHAPES["diamond"] ?? []);
  const key = await maker.makeKey("upstream-1");
  await maker.copyTo(`${folder.path}/cache`, top, { compression: "xz", key });
  await using upstream = new DirectoryUpstream(`${folder.path}/cache`, key.publicKey);
  const tokens = `${folder.path}/read-tokens`;
  Deno.writeTextFileSync(tokens, `# laptops\nalice:${TOKEN}\n`);
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "cache-get-token-file": tokens,
    "log-level": "debug",
  });
  const source = { from: [larder.url], trust: [upstream.publicKey] };

  const wrong = `machine 127.0.0.1 login larder password larder-wr0ng\n`;
  for (const netrc of [undefined, wrong]) {
    using client = new NixClient({ netrc });
    await assert.rejects(client.copyFrom(top, source));
  }
  assert.deepEqual(upstream.timesAsked, {});

  using client = new NixClient({ netrc: `machine 127.0.0.1 login larder password ${TOKEN}\n` });
  await client.copyFrom(top, source);
  assert.deepEqual(await client.closureOf(top), paths);
  await larder.logged("request", ({ token }) => token === "alice");
  assert.ok(!JSON.stringify(larder.lines).includes("s3same"));
});
