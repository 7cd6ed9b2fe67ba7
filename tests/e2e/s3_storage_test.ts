import assert from "node:assert/strict";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { NIX_UNAVAILABLE, NixClient } from "../support/nix_client.ts";
import { addObjects, type NixObject } from "../support/nix_store_objects.ts";
import { testUnless } from "../support/program.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { accountsOf, filesBelow } from "../support/storage_look.ts";
import { tempFolder } from "../support/temp_folder.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

/** The large one is uploaded in parts. */
const OBJECTS: readonly NixObject[] = [
  { name: "large", content: { bytes: 20_000_000 } },
  { name: "small" },
  { name: "top", references: ["large", "small"] },
];

testUnless(
  S3_UNAVAILABLE || NIX_UNAVAILABLE,
  "NAR files in a bucket: a real nix pulls cold, warm, and from a database without its folder",
  async () => {
    if (server === undefined) return;
    using maker = new NixClient();
    using folder = tempFolder();
    using storage = tempFolder();
    using moved = tempFolder();
    const { top, paths } = await addObjects(maker, OBJECTS);
    const key = await maker.makeKey("upstream-1");
    await maker.copyTo(folder.path, top, { compression: "none", key });
    await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
    const place = server.bucket();
    const flags = {
      ...s3Flags(place),
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      ...LONG_TIMEOUTS,
    };
    const pull = async (url: string) => {
      using client = new NixClient();
      await client.copyFrom(top, { from: [url], trust: [upstream.publicKey] });
      assert.deepEqual(await client.closureOf(top), paths);
    };
    {
      await using larder = await startLarder({ ...flags, "cache-storage-local": storage.path });
      await pull(larder.url);
      await upstream.stop();
      await pull(larder.url);
      larder.kill("SIGTERM");
      assert.equal((await larder.ended).code, 0);
    }
    const once = upstream.paths().map((path) => [path, 1]);
    assert.deepEqual(upstream.timesAsked, Object.fromEntries(once));
    assert.equal(filesBelow(`${storage.path}/nar`).size, 0, "no NAR file is in the folder");
    const objects = filesBelow(`${server.folderOf(place)}/nar`);
    assert.equal(objects.size, paths.length);
    const sum = [...objects.values()].reduce((bytes, size) => bytes + size, 0);
    assert.equal(accountsOf(storage.path).countedBytes, sum);

    Deno.copyFileSync(`${storage.path}/db.sqlite`, `${moved.path}/db.sqlite`);
    await using larder = await startLarder({ ...flags, "cache-storage-local": moved.path });
    await pull(larder.url);
    await larder.logged("reconciled", ({ files, mended }) => files === 3 && mended === 0);
  },
);
