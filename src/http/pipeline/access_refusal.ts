import type { Facts } from "../../base/failure.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { AccessRefusal } from "../access/access_rules.ts";
import { type Answer, lineAnswer, statusAnswer } from "../message/answer.ts";
import type { ClientRequest } from "../message/client_request.ts";

/** A refused request, for the log. */
export interface Refused {
  readonly request: ClientRequest;
  readonly requestId: string;
  readonly route: { readonly name: string };
}

/** Hosts are untrusted: the log cuts longer ones. */
const HOST_CHARS_MAX = 100;

/** Basic is all that Nix and browsers can send. */
const CHALLENGE = 'Basic realm="larder"';

/** Logs a refusal. A Nix without a netrc entry causes hundreds, at debug. */
export function logRefusal(log: Logger, refusal: AccessRefusal, refused: Refused): void {
  const level = refusal.reason === "no token" ? "debug" : "info";
  log[level]("request refused", refusalFacts(refusal, refused));
}

/** 401 asks browsers and programs for a token; 403 names the missing role (RFC 6750, 3.1). */
export function refusalAnswer({ status, missing }: AccessRefusal, head: boolean): Answer {
  if (status === 401) return statusAnswer(401, head, { "www-authenticate": CHALLENGE });
  if (missing === undefined) return statusAnswer(403, head);
  const scope = `Bearer realm="larder", error="insufficient_scope", scope="${missing}"`;
  const line = `Forbidden: this needs a token of the role ${missing}`;
  return lineAnswer(status, line, head, { "www-authenticate": scope });
}

function refusalFacts(
  { reason, hint, caller }: AccessRefusal,
  { request: { method, peer, headers }, requestId, route }: Refused,
): Facts {
  const host = headers.get("host")?.slice(0, HOST_CHARS_MAX);
  return {
    reason,
    method,
    route: route.name,
    ...(host === undefined ? {} : { host }),
    ...(peer === undefined ? {} : { client: peer }),
    ...(caller === undefined ? {} : { token: caller.name }),
    hint,
    request_id: requestId,
  };
}
