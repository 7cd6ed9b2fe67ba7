import type { Explainer } from "../../cache/explain/explainer.ts";
import { statusAnswer, textAnswer } from "../message/answer.ts";
import type { Route } from "./router.ts";
import { storePathHashIn } from "./store_path_text.ts";

/** `/explain?path=`: why a request for a store path is a hit or a miss, as JSON. */
export function explainRoute(explainer: Pick<Explainer, "explain">): Route {
  const parts = { status: 200, type: "application/json", lifetime: "never" } as const;
  return {
    name: "/explain",
    path: "/explain",
    audience: "own-names",
    methods: {
      async GET({ request, head }) {
        const path = storePathHashIn(new URL(request.url).searchParams.get("path") ?? "");
        if (path === undefined) return statusAnswer(400, head);
        return textAnswer(JSON.stringify(await explainer.explain(path)), head, parts);
      },
    },
  };
}
