import { type Facts, Failure, meaningOf } from "../../base/failure.ts";
import { clock, dice } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Tracer } from "../../telemetry/tracer.ts";
import type { Loops } from "../../upstream/loops.ts";
import {
  type Access,
  type AccessRefusal,
  type AccessRules,
  UNKNOWN_HOST,
} from "../access/access_rules.ts";
import { FailedTokens } from "../access/tokens.ts";
import {
  type Answer,
  type Caller,
  CHANGING_METHODS,
  type ClientRequest,
  type Delivery,
  forTokenHolders,
  lineAnswer,
  parseHost,
  pathOf,
  prefersHtml,
  queryFault,
  RETRY_AFTER,
  statusAnswer,
  textAnswer,
} from "../message/message.ts";
import { failureFacts, lossIn } from "../message/lost_part.ts";
import { markup } from "../page/markup.ts";
import type { Match, Route, Router } from "../routes/router.ts";
import type { RefusedRequest } from "../server/request_reader.ts";
import type { RequestObserver } from "./request_observer.ts";

export interface RequestPipelineDeps {
  readonly router: Router;
  readonly access: AccessRules;
  readonly observer: RequestObserver;
  /** What a client may do whose PUT is not allowed: Nix prints it. */
  readonly uploadHint: string;
  /** Knows the requests that have come back. Default: none has. */
  readonly loops?: Pick<Loops, "hasComeBack" | "run"> | undefined;
  /** `undefined`: no tracing. */
  readonly tracer?: Tracer | undefined;
  readonly log: Logger;
}

export interface RequestPipeline {
  /** Answers one request; never rejects. `delivery` reports the answer's end. */
  handle(request: ClientRequest, delivery?: Delivery): Promise<Answer>;
  /** The answer to a request that the server refused. */
  refuse(refused: RefusedRequest): Answer;
  /** Calls back once an answer is sent, or has failed. Of several, the first to end counts. */
  onFirstAnswer(begun: () => void): void;
}

interface IdentifiedRequest {
  readonly request: ClientRequest;
  readonly requestId: string;
}

const BAD_PATH =
  "Bad Request: the path has a broken escape, a control character or an escaped slash";

const MALFORMED = { kind: "malformed" } as const;

/** The phrase of status 405. */
const NOT_ALLOWED = "Method Not Allowed";

const ABSENT = { "x-cache": "MISS" };

/** The steps around every route: request id, routing, access, failures. */
export function createRequestPipeline(deps: RequestPipelineDeps): RequestPipeline {
  const { router, access, observer, loops, tracer, log } = deps;
  const requestIdOf = createRequestIds();
  const failedTokens = new FailedTokens(() => clock.nowMs());
  let begun: (() => void) | undefined;
  return { handle, refuse, onFirstAnswer: (call) => begun = call };

  async function handle(request: ClientRequest, delivery?: Delivery): Promise<Answer> {
    const startedAtMs = observer.begin();
    const requestId = requestIdOf(request.headers.get("x-request-id"));
    const path = pathOf(request.url);
    const match = path === undefined ? MALFORMED : router.match(request.method, path);
    const route = "route" in match ? match.route : undefined;
    const decision = match.kind === "route" ? access.decide(request, match.route) : undefined;
    const pull = route?.ofPath !== undefined && decision?.kind === "allowed" &&
        (request.method === "GET" || request.method === "HEAD")
      ? observer.beginPath(decision.caller?.name ?? request.peer ?? "", startedAtMs)
      : undefined;
    const span = tracer?.request(request.method, route?.name, request.headers);
    const answer = span === undefined
      ? await respond(match, decision, { request, requestId })
      : await span.run(() => respond(match, decision, { request, requestId }));
    answer.headers.set("x-request-id", requestId);
    const caller = callerIn(decision);
    const answered = { request, requestId, route, caller, answer, startedAtMs, pull, span };
    observer.answered(answered, delivery);
    if (begun !== undefined) (delivery?.ended ?? Promise.resolve()).then(firstEnded);
    return answer;
  }

  function firstEnded(): void {
    const call = begun;
    begun = undefined;
    call?.();
  }

  function refuse(refused: RefusedRequest): Answer {
    const { status, reason, expected, method, peer, request } = refused;
    const requestId = requestIdOf(request?.headers.get("x-request-id") ?? null);
    const answer = statusAnswer(status, false, { "x-request-id": requestId }, expected);
    if (request === undefined) {
      observer.refused({ answer, reason, method, client: peer, requestId });
    }
    return answer;
  }

  async function respond(
    match: Match | typeof MALFORMED,
    decision: Access | undefined,
    { request, requestId }: IdentifiedRequest,
  ): Promise<Answer> {
    const head = request.method === "HEAD";
    if (match.kind === "malformed") return lineAnswer(400, BAD_PATH, head);
    if (match.kind === "none") {
      const { near } = match;
      if (near.length === 0) return statusAnswer(404, head);
      return lineAnswer(404, `Not Found: expected ${near.join(", ")}`, head);
    }
    if (match.kind === "method") {
      const { route, route: { query }, allow } = match;
      if (query === undefined && request.method === "PUT") {
        const refused = { request, requestId, route, hint: deps.uploadHint };
        logStrayUpload(log, access.decideToUpload(request), refused);
      }
      const why = query !== undefined
        ? `: expected ${allow}`
        : request.method === "PUT"
        ? `: ${deps.uploadHint}`
        : "";
      return lineAnswer(405, `${NOT_ALLOWED}${why}`, head, { allow });
    }
    if (decision?.kind === "refused") {
      const { refusal } = decision;
      logRefusal(log, refusal, { request, requestId, route: match.route });
      if (refusal.reason === "wrong token") await failedTokens.slow(request);
      return refusalAnswer(refusal, request);
    }
    const { params, route: { query } } = match;
    const fault = query && queryFault(request.url, query[head ? "GET" : request.method] ?? []);
    if (fault !== undefined) return lineAnswer(400, `Bad Request: ${fault}`, head);
    const caller = decision?.caller;
    try {
      const mayManage = () => isManager(request);
      const routed = { request, requestId, head, params, caller, mayManage };
      const via = match.route.cached && loops ? request.headers.get("via") : null;
      // What is here needs no way round: its sender would have found it.
      if (via !== null && loops?.hasComeBack(via)) return statusAnswer(404, head, ABSENT);
      const answer = via === null || loops === undefined
        ? await match.handler(routed)
        : await loops.run(via, () => match.handler(routed));
      return caller === undefined ? answer : keptFromOthers(answer);
    } catch (error) {
      return failed(log, error, { request, requestId, route: match.route });
    }
  }

  async function isManager(request: ClientRequest): Promise<boolean> {
    const decision = access.decideToManage(request);
    if (decision.kind === "allowed") return true;
    // Else a guesser would learn of a right token here, without the delay.
    if (decision.refusal.reason === "wrong token") await failedTokens.slow(request);
    return false;
  }
}

/** A cache between us and the clients would give the answer to those without a token. */
function keptFromOthers(answer: Answer): Answer {
  const lifetime = answer.headers.get("cache-control");
  if (lifetime !== null) answer.headers.set("cache-control", forTokenHolders(lifetime));
  return answer;
}

function callerIn(decision: Access | undefined): Caller | undefined {
  return decision?.kind === "refused" ? decision.refusal.caller : decision?.caller;
}

/** Logs a failed request. A client that left is no failure of ours. */
function failed(
  log: Logger,
  error: unknown,
  identified: IdentifiedRequest & { readonly route: Route },
): Answer {
  const { request } = identified;
  const { status: meant, level } = meaningOf(error);
  const isGone = [request.signal, request.hungUp].some((signal) =>
    signal?.aborted && error === signal.reason
  );
  const answer = failureAnswer(error, meant, identified);
  const facts = error instanceof Failure ? error.facts : {};
  const known = { ...failureFacts(error), ...facts };
  const { requestId: request_id, route: { name: route } } = identified;
  const { status } = answer;
  log.event("request-failed", { route, status, request_id, ...known }, isGone ? "debug" : level);
  // The line of an outage stands for all requests: each one's own has the cause, too.
  if (meant >= 500 && !isGone) answer.failed = failureFacts(error);
  return answer;
}

function failureAnswer(
  error: unknown,
  meant: number,
  { request, route }: IdentifiedRequest & { readonly route: Route },
): Answer {
  const isRead = request.method === "GET" || request.method === "HEAD";
  const kind = error instanceof Failure ? error.kind : undefined;
  // Nix aborts a build on 500, and tries its next substituter on 404.
  const isHidden = route.cached && isRead && meant >= 500 && kind !== "out-of-reach";
  const status = isHidden ? 404 : meant;
  const head = request.method === "HEAD";
  const isLoss = kind === "away" || kind === "out-of-reach" || kind === "unavailable";
  if (isLoss && status === 503) return lineAnswer(503, lossIn(error), head, RETRY_AFTER);
  const headers = kind === "busy" ? RETRY_AFTER : cacheResultOf(route, status);
  return statusAnswer(status, head, headers);
}

/** X-Cache of a 404: it comes from the cache or the upstreams. Other errors have none. */
function cacheResultOf(route: Route, status: number): Readonly<Record<string, string>> {
  return route.cached && status === 404 ? { "x-cache": "MISS" } : {};
}

/** A caller's id appears in headers and logs, so it must be short and plain. */
const PLAIN_ID_REGEXP = /^[A-Za-z0-9._-]{1,64}$/;

/** Makes unique ids for all servers, without random bytes for each. */
function createRequestIds(): (given: string | null) => string {
  const prefix = dice.uuid().slice(0, 13);
  let count = 0;
  return (given) => {
    if (given !== null && PLAIN_ID_REGEXP.test(given)) return given;
    return `${prefix}-${(++count).toString(36)}`;
  };
}

/** A refused request, for the log. */
interface Refused {
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
function logRefusal(log: Logger, refusal: AccessRefusal, refused: Refused): void {
  const isRead = !CHANGING_METHODS.has(refused.request.method);
  const level = refusal.reason === "no token" && isRead ? "debug" : "info";
  log[level]("request refused", refusalFacts(refusal, refused));
}

/** Logs a PUT where no uploads go. `decision`: on the same as an upload, for the holder's name. */
function logStrayUpload(
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
function refusalAnswer(refusal: AccessRefusal, { method, headers }: ClientRequest): Answer {
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
