import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects } from "../support/nix_store_objects.ts";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { runLarder, withoutProgress } from "../support/run_larder.ts";
import { accountsOf, filesBelow, storedFileOf } from "../support/storage_look.ts";
import { stoppedLarder } from "../support/stopped_larder.ts";
import { chain } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

nixTest(
  "export: a Nix reads the closure from the folder, by the upstream's key or ours",
  async () => {
    using maker = new NixClient();
    using served = tempFolder();
    using out = tempFolder();
    const { top, paths } = await addObjects(maker, [
      { name: "bottom" },
      { name: "top", references: ["bottom"] },
    ]);
    const key = await maker.makeKey("upstream-1");
    await maker.copyTo(served.path, top, { compression: "xz", key });
    await using upstream = new DirectoryUpstream(served.path, key.publicKey);
    await using larder = await startLarder({
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
    });
    using first = new NixClient();
    await first.copyFrom(top, { from: [larder.url], trust: [key.publicKey] });
    const isWhole = () => accountsOf(larder.storage).keptFiles === paths.length;
    await eventually("both NARs are stored", isWhole);
    const ownKey = (await (await fetch(`${larder.url}/pubkey`)).text()).trim();

    const url = `file://${out.path}`;
    const ran = await runLarder(["export", url, top, "--cache-storage-local", larder.storage]);
    assert.deepEqual([ran.status, withoutProgress(ran.err)], [0, ""]);
    for (const trust of [key.publicKey, ownKey]) {
      using client = new NixClient();
      await client.copyFrom(top, { from: [url], trust: [trust] });
      assert.deepEqual(await client.closureOf(top), paths);
    }
  },
);

Deno.test("export: absent and damaged paths are listed, the rest is written", async () => {
  using folder = tempFolder();
  using out = tempFolder();
  const objects = chain(4);
  const [leaf, damaged, , top] = objects;
  assert.ok(leaf && damaged && top);
  await using upstream = await fakeUpstream({ objects, stored: true });
  const { narinfos } = await stoppedLarder(folder.path, upstream, objects.slice(1));
  const [one] = narinfos;
  const path = storedFileOf(folder.path, one?.narPath.slice("/nar/".length) ?? "");
  const bytes = Deno.readFileSync(path);
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  Deno.writeFileSync(path, bytes);
  const words = [`file://${out.path}/new`, top.storePath, "--cache-storage-local", folder.path];

  const ran = await runLarder(["export", ...words]);

  assert.equal(ran.status, 1);
  assert.match(ran.out, /^exported 2 paths: /);
  assert.match(ran.err, new RegExp(`  ${damaged.storePath}: Cannot export NAR file: its hash`));
  assert.match(ran.err, new RegExp(`  ${leaf.storePath}: it(?:s NAR)? is not stored`));
  const files = [...filesBelow(`${out.path}/new`).keys()].sort();
  assert.equal(files.filter((name) => name.endsWith(".narinfo")).length, 2);
  assert.equal(files.filter((name) => name.includes("/nar/")).length, 2);
  assert.equal(files.filter((name) => name.endsWith(".part")).length, 0);

  const again = await runLarder(["export", ...words]);
  assert.match(again.out, /^exported 2 paths: 0 B written/);
});

Deno.test("export: invalid arguments are status 2, a missing storage is a sentence", async () => {
  const path = chain(1)[0]?.storePath ?? "";
  for (const words of [[], ["/tmp/x", path], ["https://a.example/", path], ["file:///tmp/x"]]) {
    assert.equal((await runLarder(["export", ...words])).status, 2, words.join(" "));
  }
  using folder = tempFolder();
  const storage = ["--cache-storage-local", `${folder.path}/none`];
  const ran = await runLarder(["export", `file://${folder.path}/out`, path, ...storage]);
  assert.equal(ran.status, 1);
  assert.match(ran.err, /Cannot check .*: it is unreadable/);
  assert.equal(filesBelow(folder.path).size, 0);
});
