import { DATABASE_AWAY, Failure } from "../../../base/failure.ts";
import { wholeNumber } from "../../../base/plain_number.ts";
import {
  type UploadBody,
  type UploadFault,
  type UploadOutcome,
  UploadRefused,
} from "../../../cache/upload/upload_body.ts";
import type { Logger } from "../../../telemetry/logger.ts";
import type { Metrics } from "../../../telemetry/metrics.ts";
import { type ClientRequest, lineAnswer, RETRY_AFTER, type Role } from "../../message/message.ts";
import { failureFacts } from "../../message/lost_part.ts";
import type { Handler, Routed } from "../router.ts";

export type UploadKind = "narinfo" | "nar" | "document";

/** Status and metric label of each fault. Nix retries 408, 429 and all above 500. */
const FAULTS: Readonly<
  Record<UploadFault, { readonly status: number; readonly result: "refused" | "failed" }>
> = {
  "invalid": { status: 422, result: "refused" },
  "conflict": { status: 409, result: "refused" },
  "encoding": { status: 415, result: "refused" },
  "too-large": { status: 413, result: "refused" },
  "no-room": { status: 507, result: "failed" },
  "overloaded": { status: 503, result: "failed" },
  "cut": { status: 400, result: "failed" },
  // The server has sent this status already: log and metrics say the same.
  "stalled": { status: 408, result: "failed" },
};

/** The role that every upload needs. */
const UPLOAD_ROLE: Role = "write";

export interface UploadHandlerDeps {
  readonly metrics: Metrics;
  readonly log: Logger;
  /** UploadTrust's reason to refuse every upload; `undefined` if larder may accept some. */
  readonly closed: string | undefined;
}

/** A PUT handler. `accept` may throw UploadRefused. */
export function uploadHandler(
  { metrics, log, closed }: UploadHandlerDeps,
  kind: UploadKind,
  accept: (routed: Routed) => Promise<UploadOutcome>,
): Handler {
  const count = (result: "stored" | "known" | "refused" | "failed") =>
    metrics.series("uploads_total", { kind, result });
  const series = {
    stored: count("stored"),
    known: count("known"),
    refused: count("refused"),
    failed: count("failed"),
  };
  return async (routed) => {
    try {
      if (closed !== undefined) throw new UploadRefused("invalid", closed);
      if (routed.request.headers.get("content-range") !== null) {
        throw new UploadRefused("cut", "expected a whole file, and no Content-Range");
      }
      const outcome = await accept(routed);
      if (outcome.kind === "refused") {
        throw new UploadRefused(outcome.fault, outcome.line, outcome.cause);
      }
      series[outcome.kind].count();
      return lineAnswer(outcome.kind === "stored" ? 201 : 200, outcome.kind);
    } catch (thrown) {
      const isAway = thrown instanceof Failure && thrown.kind === "away";
      const error = isAway ? new UploadRefused("overloaded", DATABASE_AWAY, thrown) : thrown;
      if (!(error instanceof UploadRefused)) {
        series.failed.count();
        throw error;
      }
      const { status, result } = FAULTS[error.fault];
      series[result].count();
      const { message: reason, cause } = error;
      const failed = cause === undefined ? undefined : failureFacts(cause);
      const { request: { peer, method }, caller, requestId: request_id } = routed;
      log.info("upload refused", {
        ...{ kind, status, reason, method, ...failed },
        ...(peer === undefined ? {} : { client: peer }),
        ...{ role: UPLOAD_ROLE, token: caller?.name ?? "none", request_id },
      });
      const answer = lineAnswer(status, reason, false, status >= 500 ? RETRY_AFTER : {});
      answer.failed = failed;
      return answer;
    }
  };
}

/** The body of a PUT request, with its announced size. */
export function uploadBodyOf(request: ClientRequest): UploadBody {
  const { body, headers } = request;
  if (body === null) return { stream: null, length: 0 };
  const length = wholeNumber(headers.get("content-length"));
  return { stream: body, length, giveUp: () => request.giveUpBody?.() };
}
