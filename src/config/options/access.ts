import { namedTokens } from "../kinds/token.ts";
import type { OptionTable } from "../kinds/option.ts";

/** Options on who may do what. `larder config --permissions` prints the table behind them. */
export const ACCESS_OPTIONS = {
  "cache.get-token": {
    kind: namedTokens,
    secret: true,
    example: "laptop:TOKEN",
    shown: "none: anybody may read",
    help: "Token that reading needs",
    details: "A write token and an admin token may read, too. A name in front is for the log.",
  },
  "cache.put-token": {
    kind: namedTokens,
    secret: true,
    example: "ci:TOKEN",
    shown: "none",
    help: "Token that uploading needs",
    details: "An admin token may upload, too.",
  },
  "cache.admin-token": {
    kind: namedTokens,
    secret: true,
    example: "alice:TOKEN",
    shown: "none: anybody may pin, and this machine may evict",
    help: "Token that pins, evictions, removals and statistics need",
    details: "It may also read and upload.",
  },
} as const satisfies OptionTable;
