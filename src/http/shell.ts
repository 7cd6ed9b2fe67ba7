import { Failure, meaningOf, messageOf } from "../base/failure.ts";
import type { Logger } from "../telemetry/logger.ts";
import { statusAnswer } from "./answer.ts";
import { pathOf } from "./path.ts";
import { createRequestIds } from "./request_id.ts";
import type { Route, Router } from "./router.ts";

export interface ShellDeps {
  readonly router: Router;
  readonly log: Logger;
}

/**
 * What is around every request: its id, its route, and an answer for whatever fails. The result
 * never rejects.
 */
export function createShell({ router, log }: ShellDeps): (request: Request) => Promise<Response> {
  const requestIdOf = createRequestIds();

  return async function handle(request) {
    const requestId = requestIdOf(request.headers.get("x-request-id"));
    const response = await respond(request, requestId);
    response.headers.set("x-request-id", requestId);
    return response;
  };

  async function respond(request: Request, requestId: string): Promise<Response> {
    const head = request.method === "HEAD";
    const path = pathOf(request.url);
    if (path === undefined) return statusAnswer(400, head);
    const match = router.match(request.method, path);
    if (match.kind === "none") return statusAnswer(404, head);
    if (match.kind === "method") {
      return statusAnswer(405, head, { allow: match.allow, ...sourceOf(match.route) });
    }
    try {
      return await match.handler({ request, requestId, head, params: match.params });
    } catch (error) {
      return failed(error, match.route, requestId, head);
    }
  }

  function failed(error: unknown, route: Route, requestId: string, head: boolean): Response {
    const { status: meant, level } = meaningOf(error);
    // A 500 on a narinfo ends a whole build, a 404 sends the client to its next substituter.
    const status = route.cached && meant === 500 ? 404 : meant;
    const facts = error instanceof Failure ? error.facts : {};
    log[level]("request failed", {
      route: route.name,
      status,
      request_id: requestId,
      error: messageOf(error),
      ...facts,
    });
    return statusAnswer(status, head, sourceOf(route));
  }
}

/** Every answer of a route that serves the cache says where it came from. */
function sourceOf(route: Route): Readonly<Record<string, string>> {
  return route.cached ? { "x-cache": "MISS" } : {};
}
