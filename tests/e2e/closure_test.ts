import { nixTest } from "../support/nix_client.ts";
import { SHAPES } from "../support/nix_store_objects.ts";
import { pullByEitherKey } from "./pull_by_either_key.ts";

for (const [shape, objects] of Object.entries(SHAPES)) {
  for (const compression of ["xz", "zstd", "none"]) {
    nixTest(
      `${shape}, ${compression}: requested once, served again with the upstream off`,
      () => pullByEitherKey(objects, { compression }),
    );
  }
}

// The compressions in cache.nixos.org from its first years, and another that Nix can write.
for (const compression of ["bzip2", "gzip", "br"]) {
  nixTest(
    `diamond, ${compression}: requested once, served again with the upstream off`,
    () => pullByEitherKey(SHAPES["diamond"] ?? [], { compression }),
  );
}
