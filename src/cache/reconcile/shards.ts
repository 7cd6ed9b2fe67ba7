import { NIX32_ALPHABET } from "../../nix/nix32.ts";

const CHARS = [...NIX32_ALPHABET];

/** The 1,024 prefixes that divide all stored names into shards of nearly equal size. */
export const SHARDS: readonly string[] = CHARS.flatMap((first) =>
  CHARS.map((second) => first + second)
);
