import assert from "node:assert/strict";
import { DirectoryUpstream } from "../support/directory_upstream.ts";
import { eventually } from "../support/eventually.ts";
import { FaultProxy } from "../support/fault_proxy.ts";
import { LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { NixClient, nixTest } from "../support/nix_client.ts";
import { addObjects } from "../support/nix_store_objects.ts";
import { tempFolder } from "../support/temp_folder.ts";

const BYTES = 6_000_000;
const CUT_BYTES = 2_500_000;

nixTest("a Nix whose connection is cut halfway goes on where it was, kept or not", async () => {
  using maker = new NixClient();
  using folder = tempFolder();
  const { top, paths } = await addObjects(maker, [
    { name: "large", content: { bytes: BYTES, isRepetitive: false } },
  ]);
  const key = await maker.makeKey("upstream-1");
  await maker.copyTo(folder.path, top, { compression: "xz", level: 0, key });
  await using upstream = new DirectoryUpstream(folder.path, key.publicKey);
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    ...LONG_TIMEOUTS,
  });

  for (let pull = 1; pull <= 2; pull++) {
    await using proxy = new FaultProxy({ targetPort: larder.port, cutAfterBytes: CUT_BYTES });
    using client = new NixClient();
    await client.copyFrom(top, { from: [proxy.url], trust: [upstream.publicKey] });
    assert.deepEqual(await client.closureOf(top), paths);
    const parts = () =>
      larder.lines.filter(({ msg, status }) => /^request$|^serving/.test(msg) && status === 206);
    await eventually("ranges were asked for", () => parts().length >= 2 * pull);
    await larder.logged("nar cached successfully");
  }
  const nars = Object.entries(upstream.timesAsked).filter(([path]) => path.startsWith("/nar/"));
  assert.deepEqual(nars.map(([, times]) => times), [1]);
});
