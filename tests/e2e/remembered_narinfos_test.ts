import assert from "node:assert/strict";
import { parseNarinfo } from "../../src/nix/narinfo_parse.ts";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects, SHAPES } from "../support/nix_store_objects.ts";
import { scrape } from "../support/scrape.ts";
import { tempFolder } from "../support/temp_folder.ts";

type UrlOf = (narinfo: ReturnType<typeof parseNarinfo>) => string;

/** NAR URLs of binary caches that send NARs uncompressed. */
const FORMER: Readonly<Record<string, UrlOf>> = {
  "nix-serve": ({ storePathHash, narHash }) => `nar/${storePathHash}-${narHash}.nar`,
  "harmonia": ({ storePathHash, narHash }) => `nar/${narHash}.nar?hash=${storePathHash}`,
};

for (const [former, urlOf] of Object.entries(FORMER)) {
  nixTest(
    `a Nix that remembers the narinfos of ${former} pulls on from larder in its place`,
    async () => {
      using maker = new NixClient();
      using client = new NixClient();
      using folder = tempFolder();
      using formerFolder = tempFolder();
      const { top, paths } = await addObjects(maker, SHAPES["diamond"] ?? []);
      const key = await maker.makeKey("upstream-1");
      await maker.copyTo(folder.path, top, { compression: "xz", key });
      for (const { name } of [...Deno.readDirSync(folder.path)]) {
        if (!/narinfo$|cache-info$/.test(name)) continue;
        const text = Deno.readTextFileSync(`${folder.path}/${name}`);
        const former = name.endsWith(".narinfo") ? uncompressed(text, urlOf) : text;
        Deno.writeTextFileSync(`${formerFolder.path}/${name}`, former);
      }
      await using old = new DirectoryUpstream(formerFolder.path, key.publicKey);
      await client.run("nix", ["path-info", "--store", old.url, ...paths]);
      await old.stop();

      await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
      await using larder = await startLarder({
        "server-addr": new URL(old.url).host,
        "cache-upstream-url": upstream.url,
        "cache-upstream-public-key": key.publicKey,
        "prometheus-enabled": "true",
        ...LONG_TIMEOUTS,
      });
      await client.copyFrom(top, { from: [larder.url], trust: [key.publicKey] });

      assert.deepEqual(await client.closureOf(top), paths);
      const metrics = await scrape({ get: (path) => fetch(`${larder.url}${path}`) });
      assert.equal(metrics.value("larder_narinfo_served_total"), 0, "Nix asked for no narinfo");
    },
  );
}

/** The narinfo as a cache sends it that compresses nothing. */
function uncompressed(text: string, urlOf: UrlOf): string {
  return text
    .replace(/^URL: .*$/m, `URL: ${urlOf(parseNarinfo(text))}`)
    .replace(/^Compression: .*$/m, "Compression: none")
    .replaceAll(/^File(?:Hash|Size): .*\n/gm, "");
}
