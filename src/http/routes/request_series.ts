import { COMMAND_HEADER, PREFETCHED_HEADER } from "../../base/command_request.ts";
import type { NarFacts } from "../../cache/nar/nar_answer.ts";
import type { Metrics, Series } from "../../telemetry/metrics.ts";
import type { CountedResult, UnsavedBytes } from "../message/answer.ts";
import type { ClientRequest } from "../message/client_request.ts";

export function countedAs(
  { cacheResult, isFirstOfPrefetch }: Pick<NarFacts, "cacheResult" | "isFirstOfPrefetch">,
  request: Pick<ClientRequest, "headers">,
): CountedResult {
  if (isByCommand(request)) return "command";
  return isFirstOfPrefetch ? "prefetched" : cacheResult;
}

export function isByCommand({ headers }: Pick<ClientRequest, "headers">): boolean {
  return headers.get(COMMAND_HEADER) !== null;
}

/** Headers for larder's own commands. */
export function commandHeaders(
  { isFirstOfPrefetch }: Pick<NarFacts, "isFirstOfPrefetch">,
  request: Pick<ClientRequest, "headers">,
): Readonly<Record<string, string>> {
  return isFirstOfPrefetch && isByCommand(request) ? { [PREFETCHED_HEADER]: "1" } : {};
}

/**
 * The series of `cache_requests_total` for one kind, by source; `negative` is an absence from
 * memory. Each request with a well-formed name counts in one.
 */
export function requestSeries(
  metrics: Metrics,
  kind: "narinfo" | "nar",
): Readonly<Record<CountedResult | "negative", Series>> {
  return {
    negative: metrics.series("cache_requests_total", { kind, result: "negative" }),
    HIT: metrics.series("cache_requests_total", { kind, result: "hit" }),
    MISS: metrics.series("cache_requests_total", { kind, result: "miss" }),
    JOINED: metrics.series("cache_requests_total", { kind, result: "joined" }),
    prefetched: metrics.series("cache_requests_total", { kind, result: "prefetched" }),
    command: metrics.series("cache_requests_total", { kind, result: "command" }),
  };
}

/**
 * The sent bytes of a hit or a joined request that are not saved: those beyond the file that the
 * answer is made of, in proportion for a part. `undefined`: all are saved, or none is.
 */
export function unsavedBytes(
  counter: Series,
  { fileSize, madeOfBytes }: Pick<NarFacts, "fileSize" | "madeOfBytes">,
  result: CountedResult,
): UnsavedBytes | undefined {
  if (madeOfBytes === undefined || result !== "HIT" && result !== "JOINED") return undefined;
  const share = fileSize === undefined ? 1 : madeOfBytes / Math.max(fileSize, madeOfBytes, 1);
  return {
    counter,
    of: (sentBytes) => sentBytes - Math.min(Math.round(sentBytes * share), madeOfBytes),
  };
}

/** The series of `served_bytes_total` for one kind, by source. */
export function servedBytes(
  metrics: Metrics,
  kind: "narinfo" | "nar",
): Readonly<Record<CountedResult, Series>> {
  return {
    HIT: metrics.series("served_bytes_total", { kind, source: "hit" }),
    MISS: metrics.series("served_bytes_total", { kind, source: "miss" }),
    JOINED: metrics.series("served_bytes_total", { kind, source: "joined" }),
    prefetched: metrics.series("served_bytes_total", { kind, source: "prefetched" }),
    command: metrics.series("served_bytes_total", { kind, source: "command" }),
  };
}
