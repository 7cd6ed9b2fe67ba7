import { listOf } from "../kinds/list.ts";
import { boolean } from "../kinds/plain.ts";
import { publicKey } from "../kinds/public_key.ts";
import { namedTokens } from "../kinds/token.ts";
import type { OptionTable } from "../kinds/option.ts";

/** Options on permissions. `larder config --permissions` prints the table behind them. */
export const ACCESS_OPTIONS = {
  "cache.get-token": {
    kind: namedTokens,
    secret: true,
    example: "laptop:TOKEN",
    shown: "none: anybody may read",
    help: "Token that reading needs",
    details:
      "Page and figures, too. A write or admin token also reads. A name in front is for the log.",
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
    help: "Token that pins, evictions and removals need",
    details: "It may also read and upload. By itself it leaves page and figures open to all.",
  },
  "cache.allow-put-verb": {
    kind: boolean,
    default: false,
    help: "Let clients upload: nix copy --to http://HOST/upload",
    details:
      "It needs a write token, an admin token or a trusted upload key: otherwise each is refused.",
  },
  "cache.trusted-upload-key": {
    kind: listOf(publicKey),
    default: [],
    shown: "none",
    example: "builder-1:TjZSpVKWOMfhOBDJbvDVgH1U0VoWDTkpAE2dOqMHRXA=",
    help: "Public key that must have signed each uploaded narinfo",
    details: "One of several suffices. Documents, such as logs, need a write token all the same.",
    also: [{ variable: "CACHE_TRUSTED_UPLOAD_KEYS", key: "cache.trusted-upload-keys" }],
  },
  "cache.require-trusted-signature": {
    kind: boolean,
    default: false,
    help: "Refuse uploads that no trusted upload key has signed",
    details: "A trusted upload key implies it. Without any it refuses every upload.",
  },
} as const satisfies OptionTable;
