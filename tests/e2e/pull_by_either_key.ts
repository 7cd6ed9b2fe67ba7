import assert from "node:assert/strict";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { type CopyOptions, NixClient, type PullOptions } from "../support/nix_client.ts";
import { addObjects, type NixObject } from "../support/nix_store_objects.ts";
import { tempFolder } from "../support/temp_folder.ts";

export type Upstreamed = Omit<CopyOptions, "key">;

/**
 * Pulls a closure through larder from an upstream that Nix itself made. Pulls it twice more while
 * the upstream is off: trusting the upstream's key alone, and larder's alone. Each time the store
 * is new and refuses unsigned paths.
 */
export async function pullByEitherKey(
  objects: readonly NixObject[],
  options: Upstreamed,
): Promise<void> {
  using maker = new NixClient();
  using folder = tempFolder();
  const { top, paths } = await addObjects(maker, objects);
  const key = await maker.makeKey("upstream-1");
  await maker.copyTo(folder.path, top, { ...options, key });
  await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    ...LONG_TIMEOUTS,
  });

  await pull({ from: [larder.url], trust: [upstream.publicKey] });
  const once = upstream.paths().map((path) => [path, 1]);
  assert.deepEqual(upstream.timesAsked, Object.fromEntries(once));

  await upstream.stop();
  await pull({ from: [larder.url], trust: [upstream.publicKey] });
  const ownKey = await (await fetch(`${larder.url}/pubkey`)).text();
  await pull({ from: [larder.url], trust: [ownKey.trim()] });

  async function pull(from: PullOptions): Promise<void> {
    using client = new NixClient();
    await client.copyFrom(top, from);
    assert.deepEqual(await client.closureOf(top), paths);
  }
}
