import type { Facts } from "../../base/failure.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { type Access, type AccessRefusal, UNKNOWN_HOST } from "../access/access_rules.ts";
import { type Answer, lineAnswer, statusAnswer, textAnswer } from "../message/answer.ts";
import { CHANGING_METHODS, type ClientRequest } from "../message/client_request.ts";
import { parseHost } from "../message/host.ts";
import { prefersHtml } from "../message/preference.ts";
import { markup } from "../page/markup.ts";

/** A refused request, for the log. */
export interface Refused {
  readonly request: ClientRequest;
  readonly requestId: string;
  readonly route: { readonly name: string };
}

/** What stands for the name of a token that has none. */
const TOKENS: Readonly<Record<string, string>> = { "no token": "none", "wrong token": "unknown" };

/** Hosts are untrusted: the log cuts longer ones. */
const HOST_CHARS_MAX = 100;

/** Basic is all that Nix and browsers can send. */
const CHALLENGE = 'Basic realm="larder"';

/** Logs a refusal. A Nix without a netrc entry causes hundreds of its reads, at debug. */
export function logRefusal(log: Logger, refusal: AccessRefusal, refused: Refused): void {
  const isRead = !CHANGING_METHODS.has(refused.request.method);
  const level = refusal.reason === "no token" && isRead ? "debug" : "info";
  log[level]("request refused", refusalFacts(refusal, refused));
}

/** Logs a PUT where no uploads go. `decision`: on the same as an upload, for the holder's name. */
export function logStrayUpload(
  log: Logger,
  decision: Access,
  { hint, ...refused }: Refused & { readonly hint: string },
): void {
  const { reason = "", caller } = decision.kind === "refused"
    ? decision.refusal
    : { reason: undefined, caller: decision.caller };
  const token = caller?.name ?? TOKENS[reason] ?? "none";
  const facts = refusalFacts({ reason: "upload elsewhere", role: "write", hint }, refused);
  log.info("request refused", { ...facts, token });
}

/**
 * 401 asks browsers and programs for a token; 403 names the missing role (RFC 6750, 3.1), or the
 * option that allows the host.
 */
export function refusalAnswer(refusal: AccessRefusal, { method, headers }: ClientRequest): Answer {
  const { status, reason, missing, role } = refusal;
  const head = method === "HEAD";
  if (status === 401) {
    const why = role === undefined ? "" : `: this needs a token of the role ${role}`;
    return lineAnswer(401, `Unauthorized${why}`, head, { "www-authenticate": CHALLENGE });
  }
  if (reason === UNKNOWN_HOST) {
    const host = parseHost(headers.get("host") ?? "")?.name;
    if (host !== undefined) {
      return unknownHostAnswer(host, prefersHtml(headers.get("accept")), head);
    }
  }
  if (missing === undefined) return statusAnswer(403, head);
  const scope = `Bearer realm="larder", error="insufficient_scope", scope="${missing}"`;
  const line = `Forbidden: this needs a token of the role ${missing}`;
  return lineAnswer(status, line, head, { "www-authenticate": scope });
}

const UNKNOWN_HOST_STYLE = "body{max-width:40rem;margin:3rem auto;padding:0 1rem;" +
  "font:1rem/1.5 system-ui,sans-serif;color-scheme:light dark;overflow-wrap:anywhere}" +
  "pre{padding:1rem;border:1px solid;white-space:pre-wrap}";

/** `host` is a name by its grammar: it has nothing that HTML, or a shell, could take for its own. */
function unknownHostAnswer(host: string, isForPeople: boolean, head: boolean): Answer {
  const option = `--server-allowed-hosts ${host}`;
  if (!isForPeople) {
    return lineAnswer(403, `Forbidden: ${host} is no name of this larder; add ${option}`, head);
  }
  const { text } = markup`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>larder: ${host} is not one of its names</title>
<style>${UNKNOWN_HOST_STYLE}</style>
<h1>larder does not know this name</h1>
<p>Your browser asked for a page of <strong>${host}</strong>.</p>
<p>larder shows its pages under its own names alone, because any website could lead a name of its
own here, and read them.</p>
<p>If ${host} is this cache, start larder with this option:</p>
<pre>${option}</pre>
<p>On NixOS: <code>services.larder.settings.server.allowed-hosts = [ "${host}" ];</code></p>
<p>Its addresses work in any case. Nix does not need any of this: it may use every name.</p>
</html>
`;
  const policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
  const headers = { "content-security-policy": policy, vary: "Accept" };
  const type = "text/html; charset=utf-8";
  return textAnswer(text, head, { status: 403, type, lifetime: "never", headers });
}

function refusalFacts(
  { reason, role, hint, caller }: Omit<AccessRefusal, "status">,
  { request: { method, peer, headers }, requestId, route }: Refused,
): Facts {
  const host = headers.get("host")?.slice(0, HOST_CHARS_MAX);
  return {
    reason,
    method,
    route: route.name,
    ...(host === undefined ? {} : { host }),
    ...(peer === undefined ? {} : { client: peer }),
    ...(role === undefined ? {} : { role, token: caller?.name ?? TOKENS[reason] ?? "none" }),
    hint,
    request_id: requestId,
  };
}
