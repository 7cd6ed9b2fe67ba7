import type { RequestHeaders } from "../../base/request_headers.ts";
import { HOST_PLACEHOLDER } from "../../nix/client_ways.ts";
import { parseHost, textAnswer } from "../message/message.ts";
import type { Route } from "./router.ts";

export interface ClientConfigDeps {
  /** The keys for the client's `trusted-public-keys`. */
  readonly publicKeys: readonly string[];
  readonly usesTls: boolean;
  /** The URL by which other machines reach what a client called so. */
  readonly reachableUrl: (url: string) => Promise<string>;
}

/** What the page and `larder client-config` tell clients: the address of this cache, and its keys. */
export function clientConfigRoute({ publicKeys, usesTls, reachableUrl }: ClientConfigDeps): Route {
  const parts = { status: 200, type: "application/json", lifetime: "never" } as const;
  return {
    name: "/client-config",
    path: "/client-config",
    audience: "own-names",
    methods: {
      async GET({ request, head }) {
        const url = await reachableUrl(calledUrl(request.headers, usesTls));
        return textAnswer(JSON.stringify({ url, public_keys: publicKeys }), head, parts);
      },
    },
  };
}

/** Placeholder for an unknown address of this cache. */
const UNKNOWN_URL = `http://${HOST_PLACEHOLDER}`;

/**
 * The URL that the client used for this cache, without a slash at its end. The answer never repeats
 * a malformed host: the headers are untrusted.
 */
export function calledUrl(headers: RequestHeaders, usesTls: boolean): string {
  const host = headers.get("host");
  if (host === null || parseHost(host) === undefined) return UNKNOWN_URL;
  const isSecure = usesTls || headers.get("x-forwarded-proto") === "https";
  return `${isSecure ? "https" : "http"}://${host.toLowerCase()}`;
}
