import type { FakeUpstream } from "./fake_upstream.ts";
import { startLarder } from "./larder_process.ts";
import { servedNar, type ServedNarinfo, servedNarinfo } from "./served_nar.ts";
import type { StoreObject } from "./store_object.ts";

/** A storage folder that a larder has filled and left. */
export interface StoppedLarder {
  /** Those that it ran with. */
  readonly flags: Readonly<Record<string, string>>;
  readonly narinfos: readonly ServedNarinfo[];
}

/** Runs a larder on `storage` until it has kept these. */
export async function stoppedLarder(
  storage: string,
  upstream: FakeUpstream,
  objects: readonly StoreObject[],
): Promise<StoppedLarder> {
  const flags = {
    "cache-storage-local": storage,
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  };
  const narinfos: ServedNarinfo[] = [];
  await using larder = await startLarder(flags);
  for (const { storePathHash } of objects) {
    const narinfo = await servedNarinfo(larder.port, storePathHash);
    await servedNar(larder.port, narinfo);
    narinfos.push(narinfo);
  }
  larder.kill("SIGTERM");
  await larder.ended;
  return { flags, narinfos };
}
