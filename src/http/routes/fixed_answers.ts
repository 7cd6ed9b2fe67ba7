import { formatNixCacheInfo } from "../../nix/nix_cache_info.ts";
import { STORE_DIR } from "../../nix/store_path.ts";
import { LARDER_HEADER } from "../../upstream/loops.ts";
import { statusAnswer, textAnswer } from "../message/message.ts";
import type { Route } from "./router.ts";

/** `/nix-cache-info`, below `prefix`. Nix reads it first. It does not depend on the upstreams. */
export function nixCacheInfoRoute(priority: number, prefix = ""): Route {
  const text = formatNixCacheInfo({ storeDir: STORE_DIR, wantMassQuery: true, priority });
  const parts = {
    status: 200,
    type: "text/x-nix-cache-info",
    lifetime: "settings",
    headers: { [LARDER_HEADER]: "1" },
  } as const;
  return {
    name: `${prefix}/nix-cache-info`,
    path: `${prefix}/nix-cache-info`,
    methods: { GET: ({ head }) => textAnswer(text, head, parts) },
  };
}

/** `/healthz`: the process answers. */
export const HEALTHZ_ROUTE: Route = {
  name: "/healthz",
  path: "/healthz",
  methods: { GET: ({ head }) => statusAnswer(200, head) },
};

/** `/readyz`: 200, or 503 once the server is stopping. */
export function readyzRoute(isReady: () => boolean): Route {
  return {
    name: "/readyz",
    path: "/readyz",
    methods: { GET: ({ head }) => statusAnswer(isReady() ? 200 : 503, head) },
  };
}

/** The key for a client's `trusted-public-keys`; 404 if this cache does not sign. */
export function pubkeyRoute(publicKey: string | undefined): Route {
  const parts = { status: 200, type: "text/plain", lifetime: "settings" } as const;
  return {
    name: "/pubkey",
    path: "/pubkey",
    methods: {
      GET: ({ head }) =>
        publicKey === undefined
          ? statusAnswer(404, head)
          : textAnswer(`${publicKey}\n`, head, parts),
    },
  };
}
