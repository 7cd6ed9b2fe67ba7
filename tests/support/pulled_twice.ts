import assert from "node:assert/strict";
import { fakeUpstream } from "./fake_upstream.ts";
import { startLarder } from "./larder_process.ts";
import { rawRequest, requestText } from "./raw_http.ts";
import { servedNar, servedNarinfo } from "./served_nar.ts";
import { makeStoreObject } from "./store_object.ts";

export interface Surroundings {
  readonly storage: string;
  /** A program that runs the words behind it; none: directly. */
  readonly through: readonly string[];
}

/**
 * Fails unless a larder in these surroundings pulls a NAR, verifies it, serves it again from disk,
 * and stops in order.
 */
export async function pullTwice({ storage, through }: Surroundings): Promise<void> {
  const object = makeStoreObject({ name: "pulled", size: 300_000 });
  await using upstream = await fakeUpstream({ objects: [object] });
  await using larder = await startLarder(
    {
      "cache-storage-local": storage,
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
    },
    {},
    through,
  );

  const narinfo = await servedNarinfo(larder.port, object.storePathHash);
  assert.equal((await servedNar(larder.port, narinfo)).status, 200);
  await larder.logged("nar cached successfully");
  const again = await rawRequest(larder.port, requestText("GET", narinfo.narPath));
  larder.kill("SIGTERM");

  assert.equal(again.headers.get("x-cache"), "HIT");
  assert.equal((await larder.ended).code, 0);
}
