import { parsePublicKey } from "../../nix/signature.ts";
import { duration } from "../kinds/duration.ts";
import { listOf } from "../kinds/list.ts";
import { boolean, path } from "../kinds/plain.ts";
import { publicKey } from "../kinds/public_key.ts";
import { upstreamUrl } from "../kinds/upstream_url.ts";
import type { OptionTable } from "../kinds/option.ts";

/** Which binary caches are asked, whose signatures count, and how long to wait. */
export const UPSTREAM_OPTIONS = {
  "cache.upstream-url": {
    kind: listOf(upstreamUrl),
    default: [{ url: "https://cache.nixos.org" }],
    help: "Binary cache to ask; those given first are preferred",
    details: "A query ?priority=N overrides the priority that the upstream announces.",
    also: [
      { variable: "CACHE_UPSTREAM_URLS", key: "cache.upstream.urls" },
      {
        flag: "--upstream-cache",
        variable: "UPSTREAM_CACHES",
        key: "cache.upstream.caches",
      },
    ],
  },
  "cache.upstream-public-key": {
    kind: listOf(publicKey),
    default: [
      parsePublicKey("cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY="),
    ],
    help: "Key that may sign narinfos, whichever upstream they come from",
    also: [
      { variable: "CACHE_UPSTREAM_PUBLIC_KEYS", key: "cache.upstream.public-keys" },
      { flag: "--upstream-public-key", variable: "UPSTREAM_PUBLIC_KEYS" },
    ],
  },
  "cache.require-upstream-signature": {
    kind: boolean,
    default: true,
    help: "Refuse narinfos that none of the upstream keys signed",
  },
  "cache.upstream-dialer-timeout": {
    kind: duration,
    default: 3_000,
    help: "Give up on an upstream that does not accept a connection",
    also: [
      { key: "cache.upstream.dialer-timeout" },
      { flag: "--upstream-dialer-timeout", variable: "UPSTREAM_DIALER_TIMEOUT" },
    ],
  },
  "cache.upstream-response-header-timeout": {
    kind: duration,
    default: 3_000,
    help: "Give up on an upstream that does not begin to answer",
    also: [
      { key: "cache.upstream.response-header-timeout" },
      {
        flag: "--upstream-response-header-timeout",
        variable: "UPSTREAM_RESPONSE_HEADER_TIMEOUT",
      },
    ],
  },
  "cache.upstream-body-idle-timeout": {
    kind: duration,
    default: 30_000,
    help: "Give up on an upstream that stops in the middle of an answer",
  },
  "cache.upstream-ca-file": {
    kind: path,
    shown: "the system's certificates",
    help: "More certificate authorities to trust for upstreams (PEM)",
    details: "The OTLP receiver of --otel-grpc-url is checked with them too.",
  },
} as const satisfies OptionTable;
