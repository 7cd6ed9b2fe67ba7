import type { NarinfoServer } from "../../cache/serve_narinfo.ts";
import { isStorePathHash } from "../../nix/store_path.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { statusAnswer, textAnswer } from "../answer.ts";
import type { Route } from "../router.ts";

export interface NarinfoRouteDeps {
  readonly narinfos: Pick<NarinfoServer, "serve">;
  readonly metrics: Metrics;
}

const RESULT = { HIT: "hit", MISS: "miss", JOINED: "joined" } as const;

/** A narinfo; 404 for whatever we cannot serve, also for what is no store path hash. */
export function narinfoRoute({ narinfos, metrics }: NarinfoRouteDeps): Route {
  return {
    name: "/{hash}.narinfo",
    path: /^\/([^/]*)\.narinfo$/,
    cached: true,
    methods: {
      async GET({ params: [hash = ""], head }) {
        if (!isStorePathHash(hash)) return statusAnswer(404, head, { "x-cache": "HIT" });
        const { source, text } = await narinfos.serve(hash);
        const headers = { "x-cache": source };
        const result = text === undefined && source === "HIT" ? "negative" : RESULT[source];
        metrics.count("cache_requests_total", { kind: "narinfo", result });
        if (text === undefined) return statusAnswer(404, head, headers);
        if (!head) metrics.count("narinfo_served_total", {});
        const type = "text/x-nix-narinfo";
        return textAnswer(text, head, { status: 200, type, lifetime: "narinfo", headers });
      },
    },
  };
}
