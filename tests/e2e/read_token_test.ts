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

Deno.test("read token: no file of the storage has a token, right or wrong", async () => {
  using folder = tempFolder();
  const tokens = { get: "s3same-read", put: "s3same-write", admin: "s3same-admin" };
  {
    await using larder = await startLarder({
      "cache-storage-local": folder.path,
      "cache-allow-put-verb": "true",
      ...Object.fromEntries(
        Object.entries(tokens).map(([role, token]) => [`cache-${role}-token`, `ci:${token}`]),
      ),
    });
    const hash = "0".repeat(32);
    for (const token of [...Object.values(tokens), "s3same-wr0ng"]) {
      const headers = { authorization: `Bearer ${token}` };
      for (const path of ["stats", "pins", `${hash}.narinfo`]) {
        await (await fetch(`${larder.url}/${path}`, { headers })).body?.cancel();
      }
      const upload = { method: "PUT", headers, body: `{"version":1,"root":{"type":"regular"}}` };
      await (await fetch(`${larder.url}/upload/${hash}.ls`, upload)).body?.cancel();
    }
  }
  const files = [...filesBelow(folder.path)];
  assert.ok(files.length > 2, `${files}`);
  for (const path of files) {
    const text = new TextDecoder("latin1").decode(Deno.readFileSync(path));
    assert.ok(!text.includes("s3same"), path);
  }
});

function* filesBelow(folder: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (isDirectory) yield* filesBelow(`${folder}/${name}`);
    else yield `${folder}/${name}`;
  }
}
