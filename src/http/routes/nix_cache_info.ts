import { formatNixCacheInfo } from "../../nix/nix_cache_info.ts";
import { STORE_DIR } from "../../nix/store_path.ts";
import { LARDER_HEADER } from "../../upstream/loops.ts";
import { textAnswer } from "../message/answer.ts";
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
