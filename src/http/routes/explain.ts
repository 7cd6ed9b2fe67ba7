import { Failure, messageOf } from "../../base/failure.ts";
import type { Waiter } from "../../base/read_turns.ts";
import { DATABASE } from "../../telemetry/events.ts";
import {
  type Answer,
  type ClientRequest,
  lineAnswer,
  queryIn,
  statusAnswer,
  textAnswer,
} from "../message/message.ts";
import type { Found } from "../page/packages_part.ts";
import type { Route } from "./router.ts";
import type { Searches } from "./searches.ts";
import { storePathIn } from "./store_path_text.ts";

export interface ExplainRouteDeps {
  readonly searches: Searches;
}

const EXPECTED = "path, a store path or the hash of one, or q, a search";

const PARTS = { status: 200, type: "application/json", lifetime: "never" } as const;

/**
 * `/explain?path=`: why a request for a store path is a hit or a miss, as JSON. `/explain?q=`: the
 * results of the page's search.
 */
export function explainRoute({ searches }: ExplainRouteDeps): Route {
  return {
    name: "/explain",
    path: "/explain",
    audience: "own-names",
    query: { GET: ["path", "q"] },
    methods: {
      async GET({ request, head }) {
        const searchParams = new URLSearchParams(queryIn(request.url));
        const query = searchParams.get("q");
        if (query !== null) return foundAnswer(await searches.find(query, waiterOf(request)), head);
        const path = storePathIn(searchParams.get("path") ?? "");
        if (path === undefined) return lineAnswer(400, `Bad Request: expected ${EXPECTED}`, head);
        const explanation = await searches.explain(path, waiterOf(request));
        return textAnswer(JSON.stringify(explanation), head, PARTS);
      },
    },
  };
}

/** The client of a request for an expensive read, which ends with it. */
export function waiterOf({ peer = "", signal, hungUp = signal }: ClientRequest): Waiter {
  return { client: peer, signal: hungUp };
}

function foundAnswer({ failure, cause, explanation, listed, named }: Found, head: boolean): Answer {
  if (cause instanceof Failure && cause.kind !== "broken") throw cause;
  if (cause !== undefined) {
    throw new Failure(
      "unavailable",
      `Cannot search: ${messageOf(cause)}`,
      { part: DATABASE },
      cause,
    );
  }
  if (failure !== undefined) return statusAnswer(400, head);
  const found = {
    explanation: explanation ?? null,
    ...listed === undefined ? {} : { listed },
    named: named.map(({ storePathHash, name }) => ({ hash: storePathHash, name })),
  };
  return textAnswer(JSON.stringify(found), head, PARTS);
}
