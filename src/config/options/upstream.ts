import { parsePublicKey } from "../../nix/signature.ts";
import { duration } from "../kinds/duration.ts";
import { listOf } from "../kinds/list.ts";
import { boolean, path } from "../kinds/plain.ts";
import { publicKey } from "../kinds/public_key.ts";
import { upstreamUrl } from "../kinds/upstream_url.ts";
import type { OptionTable } from "../kinds/option.ts";

/** Options of the upstreams: URLs, trusted keys and timeouts. */
export const UPSTREAM_OPTIONS = {
  "cache.upstream-url": {
    kind: listOf(upstreamUrl),
    default: [{ url: "https://cache.nixos.org" }],
    help: "Upstream binary cache; earlier ones are preferred",
    details: "A query ?priority=N overrides the upstream's own priority.",
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
    shown: "the key of cache.nixos.org",
    help: "Trusted key for narinfos of all upstreams",
    also: [
      { variable: "CACHE_UPSTREAM_PUBLIC_KEYS", key: "cache.upstream.public-keys" },
      { flag: "--upstream-public-key", variable: "UPSTREAM_PUBLIC_KEYS" },
    ],
  },
  "cache.require-upstream-signature": {
    kind: boolean,
    default: true,
    help: "Refuse narinfos without a signature of a trusted key",
  },
  "cache.upstream-dialer-timeout": {
    kind: duration,
    default: 3_000,
    help: "Timeout for connecting to an upstream",
    also: [
      { key: "cache.upstream.dialer-timeout" },
      { flag: "--upstream-dialer-timeout", variable: "UPSTREAM_DIALER_TIMEOUT" },
    ],
  },
  "cache.upstream-response-header-timeout": {
    kind: duration,
    default: 3_000,
    help: "Time for response headers; after a third, another upstream is asked",
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
    help: "Timeout for silence of a connected upstream, before or within a body",
  },
  "cache.upstream-ca-file": {
    kind: path,
    shown: "the system's certificates",
    help: "Further trusted certificate authorities (PEM) for upstreams",
    details: "Also for the OTLP receiver of --otel-grpc-url.",
  },
} as const satisfies OptionTable;
