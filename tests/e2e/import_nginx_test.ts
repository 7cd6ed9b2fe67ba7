import assert from "node:assert/strict";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { NginxCache } from "../support/nginx_cache.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { runLarder, withoutProgress } from "../support/run_larder.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { accountsOf, filesBelow } from "../support/storage_look.ts";
import { chain, type StoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const excuse = programsMissing("nginx");
const objects = chain(3);

testUnless(excuse, "import nginx: cached paths are served without an upstream", async () => {
  using storage = tempFolder();
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using nginx = await filled(upstream);
  const ran = await runImport(nginx, upstream, storage.path);
  assert.deepEqual([ran.status, withoutProgress(ran.err)], [0, ""]);
  assert.match(ran.out, /^imported 3 paths/);
  const again = await runImport(nginx, upstream, storage.path);
  assert.match(again.out, /imported 0 paths \(0 B\); 3 were here already/);

  await using larder = await startLarder({
    "cache-upstream-url": "http://127.0.0.1:9",
    "cache-storage-local": storage.path,
  });
  for (const { storePathHash } of objects) {
    const answer = await servedNar(larder.port, await servedNarinfo(larder.port, storePathHash));
    assert.deepEqual([answer.status, answer.headers.get("x-cache")], [200, "HIT"]);
  }
});

testUnless(excuse, "import nginx: a wrong body and a missing one are listed and left", async () => {
  using storage = tempFolder();
  await using upstream = await fakeUpstream({ objects, compression: "none" });
  await using nginx = await filled(upstream);
  const [wrong, missing, right] = objects;
  assert.ok(wrong && missing && right);
  const file = await cachedFile(nginx, upstream, wrong);
  const bytes = Deno.readFileSync(file);
  bytes[bytes.length - 20] = (bytes.at(-20) ?? 0) ^ 1;
  Deno.writeFileSync(file, bytes);
  Deno.removeSync(await cachedFile(nginx, upstream, missing));

  const ran = await runImport(nginx, upstream, storage.path);

  assert.equal(ran.status, 1);
  assert.match(ran.err, new RegExp(`${wrong.storePath}: its NAR is broken: the NAR's hash is`));
  assert.match(ran.err, new RegExp(`nginx does not have ${missing.storePath}`));
  assert.deepEqual(accountsOf(storage.path).narinfos, new Set([right.storePathHash]));
});

Deno.test("import nginx: another folder is a sentence, --link is an error", async () => {
  using folder = tempFolder();
  const words = ["import", "nginx", folder.path, "--cache-storage-local", `${folder.path}/larder`];
  const ran = await runLarder(words);
  assert.equal(ran.status, 1);
  assert.match(ran.err, /nginx has no narinfo there; give the folder of proxy_cache_path/);
  assert.equal(filesBelow(folder.path).size, 0);
  assert.equal((await runLarder([...words, "--link"])).status, 2);
});

/** An nginx through which a client has pulled everything, and requested absent paths. */
async function filled(upstream: FakeUpstream): Promise<NginxCache> {
  const nginx = await NginxCache.open(upstream.url);
  for (const { storePathHash } of objects) {
    await servedNar(nginx.port, await servedNarinfo(nginx.port, storePathHash));
  }
  await rawRequest(nginx.port, requestText("GET", `/${"0".repeat(32)}.narinfo`));
  return nginx;
}

function runImport(nginx: NginxCache, upstream: FakeUpstream, storage: string) {
  const trusting = ["--cache-upstream-public-key", upstream.publicKey];
  const into = ["--cache-storage-local", storage];
  return runLarder(["import", "nginx", nginx.cacheFolder, ...into, ...trusting]);
}

async function cachedFile(
  { cacheFolder }: NginxCache,
  upstream: FakeUpstream,
  object: StoreObject,
): Promise<string> {
  const url = await upstream.narUrlOf(object);
  const isIt = (path: string) => {
    const text = new TextDecoder("latin1").decode(Deno.readFileSync(path).subarray(0, 1_000));
    return /\nKEY: (.*)\n/.exec(text)?.[1]?.endsWith(`/${url}`);
  };
  const found = [...filesBelow(cacheFolder).keys()].find(isIt);
  assert.ok(found, `nginx has ${url}`);
  return found;
}
