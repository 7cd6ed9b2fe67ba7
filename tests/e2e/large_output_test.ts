import { nixTest } from "../support/nix_client.ts";
import { pullByEitherKey, type Upstreamed } from "./pull_by_either_key.ts";

const BYTES = 300_000_000;

for (const options of [{ compression: "none" }, { compression: "zstd", level: 1 }]) {
  nixTest(`300 MB that cannot be compressed, ${options.compression}`, () => large(options, false));
}

// The upstream's NAR file is a few thousand times smaller than its NAR.
nixTest("300 MB that are nearly nothing when compressed, xz", () => {
  return large({ compression: "xz", level: 0 }, true);
});

async function large(options: Upstreamed, isRepetitive: boolean): Promise<void> {
  await pullByEitherKey([{ name: "large", content: { bytes: BYTES, isRepetitive } }], options);
}
