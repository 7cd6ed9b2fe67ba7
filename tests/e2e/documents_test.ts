import assert from "node:assert/strict";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { type LogLine, LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects, storePathOf } from "../support/nix_store_objects.ts";
import { servedNarinfo } from "../support/served_nar.ts";
import { tempFolder } from "../support/temp_folder.ts";

const DRV = "/nix/store/n5glp21rsz314qssw9fbvfswgy3kc68f-hello-2.12.1.drv";
const LOG = "unpacking sources\ninstalling\n";

nixTest("logs and listings come through, and after a restart without the upstream", async () => {
  using maker = new NixClient();
  using folder = tempFolder();
  using storage = tempFolder();
  const { top } = await addObjects(maker, [
    { name: "unbuilt", deriver: DRV.replace("hello", "unknown") },
    { name: "built", deriver: DRV, references: ["unbuilt"] },
  ]);
  const key = await maker.makeKey("upstream-1");
  await maker.copyTo(folder.path, top, { compression: "xz", key, listings: true });
  Deno.mkdirSync(`${folder.path}/log`, { recursive: true });
  Deno.writeTextFileSync(`${folder.path}/log/${DRV.slice("/nix/store/".length)}`, LOG);
  const hash = /[^/]{32}(?=-)/.exec(top)?.[0] ?? "";
  const listing = `${hash}.ls`;
  const written = Deno.readTextFileSync(`${folder.path}/${listing}`);
  await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
  const flags = {
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "cache-storage-local": storage.path,
    ...LONG_TIMEOUTS,
  };

  for (const source of ["MISS", "HIT"]) {
    await using larder = await startLarder(flags);
    using client = new NixClient();
    assert.equal(await client.run("nix", ["log", "--store", larder.url, top]), LOG);
    const answer = await fetch(`${larder.url}/${listing}`);
    assert.deepEqual([await answer.text(), answer.headers.get("x-cache")], [written, source]);
    const seen = await client.run("nix", ["store", "ls", "-R", "--store", larder.url, top]);
    assert.deepEqual(pathsIn(JSON.parse(written).root), seen.trim().split("\n").sort());
    const unbuilt = ["log", "--store", larder.url, storePathOf("unbuilt")];
    await assert.rejects(client.run("nix", unbuilt), { message: /log of .* is not available/ });
    // A kill may come before the database has the client's NAR.
    const { narPath } = await servedNarinfo(larder.port, hash);
    const isOfClient = ({ nar }: LogLine) => narPath === `/nar/${nar}`;
    if (source === "MISS") await larder.logged("nar cached successfully", isOfClient);
    await upstream.stop();
  }
});

interface Entry {
  readonly entries?: Readonly<Record<string, Entry>>;
}

/** As `nix store ls -R` writes them. */
function pathsIn({ entries = {} }: Entry, above = "."): readonly string[] {
  return Object.entries(entries)
    .flatMap(([name, entry]) => [`${above}/${name}`, ...pathsIn(entry, `${above}/${name}`)])
    .sort();
}
