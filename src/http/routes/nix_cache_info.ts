import { formatNixCacheInfo } from "../../nix/nix_cache_info.ts";
import { STORE_DIR } from "../../nix/store_path.ts";
import { textAnswer } from "../message/answer.ts";
import type { Route } from "./router.ts";

/** What a Nix client reads first; the same whatever the upstreams do. */
export function nixCacheInfoRoute(priority: number): Route {
  const text = formatNixCacheInfo({ storeDir: STORE_DIR, wantMassQuery: true, priority });
  const parts = { status: 200, type: "text/x-nix-cache-info", lifetime: "settings" } as const;
  return {
    name: "/nix-cache-info",
    path: "/nix-cache-info",
    methods: { GET: ({ head }) => textAnswer(text, head, parts) },
  };
}
