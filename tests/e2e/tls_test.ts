import assert from "node:assert/strict";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects, SHAPES } from "../support/nix_store_objects.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { OwnCertificate } from "../support/tls_front.ts";

nixTest("HTTPS: a closure is pulled over it by a Nix that trusts the certificate", async () => {
  using certificate = new OwnCertificate();
  using maker = new NixClient();
  using folder = tempFolder();
  const { top, paths } = await addObjects(maker, SHAPES["diamond"] ?? []);
  const key = await maker.makeKey("upstream-1");
  await maker.copyTo(folder.path, top, { compression: "xz", key });
  await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "server-tls-cert": certificate.caFile,
    "server-tls-key": certificate.keyFile,
  });
  assert.match(larder.url, /^https:/);
  const from = { from: [larder.url], trust: [upstream.publicKey] };

  using client = new NixClient({ caFile: certificate.caFile });
  await client.copyFrom(top, from);
  assert.deepEqual(await client.closureOf(top), paths);

  using stranger = new NixClient();
  await assert.rejects(stranger.copyFrom(top, from), { message: /SSL|certificate/i });
});
