import type { PathRecord } from "../../cache/nar/store_path_names.ts";
import type { NarinfoAnswer, NarinfoServer } from "../../cache/narinfo/serve_narinfo.ts";
import { isStorePathHash, type StorePathHash } from "../../nix/store_path.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import {
  countedAnswer,
  countedAs,
  isByCommand,
  requestSeries,
  servedBytes,
  statusAnswer,
  textAnswer,
} from "../message/message.ts";
import { removeHandler } from "./remove_handler.ts";
import type { Route } from "./router.ts";

export interface NarinfoRouteDeps {
  readonly narinfos: Pick<NarinfoServer, "serve">;
  readonly metrics: Metrics;
  /** Tells the uses of larder's own commands from those of clients. */
  readonly record: Pick<PathRecord, "usedByCommand">;
  /** Undefined unless clients may remove narinfos. */
  readonly remove?: (storePathHash: StorePathHash) => Promise<boolean>;
}

/** A narinfo; 404 if larder cannot serve it, or the name is no store path hash. */
export function narinfoRoute({ narinfos, metrics, record, remove }: NarinfoRouteDeps): Route {
  const requests = requestSeries(metrics, "narinfo");
  const served = metrics.series("narinfo_served_total", {});
  const bytes = servedBytes(metrics, "narinfo");

  return {
    name: "/{hash}.narinfo",
    path: { before: "/", behind: ".narinfo" },
    cached: true,
    ofPath: "narinfo",
    methods: {
      async GET({ params: [text = ""], head, request, requestId }) {
        if (!isStorePathHash(text)) return statusAnswer(404, head, { "x-cache": "HIT" });
        let answer: NarinfoAnswer;
        try {
          answer = await narinfos.serve(text, { requestId, isHead: head });
        } catch (error) {
          requests[isByCommand(request) ? "command" : "MISS"].count();
          throw error;
        }
        const { cacheResult, text: narinfo } = answer;
        const headers = { "x-cache": cacheResult };
        const counted = countedAs(answer, request);
        const isNegative = narinfo === undefined && cacheResult === "HIT" && counted !== "command";
        requests[isNegative ? "negative" : counted].count();
        if (narinfo === undefined) return statusAnswer(404, head, headers);
        if (counted === "command") record.usedByCommand(text);
        if (!head) {
          served.count();
          // Narinfos are ASCII: as many bytes as characters.
          bytes[counted].add(narinfo.length);
        }
        const type = "text/x-nix-narinfo";
        const parts = { status: 200, type, lifetime: "narinfo", headers } as const;
        const shown = countedAnswer(textAnswer(narinfo, head, parts), counted, answer.narName);
        shown.hasAsked = answer.hasAsked ?? false;
        return shown;
      },
      ...(remove === undefined ? {} : { DELETE: removeHandler(hashOrNone, remove) }),
    },
  };
}

function hashOrNone(text: string): StorePathHash | undefined {
  return isStorePathHash(text) ? text : undefined;
}
