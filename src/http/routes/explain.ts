import type { Explainer } from "../../cache/explain/explainer.ts";
import { type Answer, statusAnswer, textAnswer } from "../message/answer.ts";
import type { Found } from "../page/packages_part.ts";
import type { Route } from "./router.ts";
import { storePathIn } from "./store_path_text.ts";

export interface ExplainRouteDeps {
  readonly explainer: Pick<Explainer, "explain">;
  /** The page's search. */
  readonly search: (text: string) => Promise<Found>;
}

const PARTS = { status: 200, type: "application/json", lifetime: "never" } as const;

/**
 * `/explain?path=`: why a request for a store path is a hit or a miss, as JSON. `/explain?q=`: the
 * results of the page's search.
 */
export function explainRoute({ explainer, search }: ExplainRouteDeps): Route {
  return {
    name: "/explain",
    path: "/explain",
    audience: "own-names",
    methods: {
      async GET({ request, head }) {
        const { searchParams } = new URL(request.url);
        const query = searchParams.get("q");
        if (query !== null) return foundAnswer(await search(query), head);
        const path = storePathIn(searchParams.get("path") ?? "");
        if (path === undefined) return statusAnswer(400, head);
        const explanation = await explainer.explain(path.hash, path.name);
        return textAnswer(JSON.stringify(explanation), head, PARTS);
      },
    },
  };
}

function foundAnswer({ isUnreadable, explanation, named }: Found, head: boolean): Answer {
  if (isUnreadable) return statusAnswer(503, head);
  const found = {
    explanation: explanation ?? null,
    named: named.map(({ storePathHash, name }) => ({ hash: storePathHash, name })),
  };
  return textAnswer(JSON.stringify(found), head, PARTS);
}
