import type { ClosureLister } from "../../pins/pinned_closures.ts";
import { textAnswer } from "../message/answer.ts";
import type { Route } from "./router.ts";

/** The pin roots and the stored part of their closures, in the order of pinning. */
export function pinnedClosuresRoute(closures: Pick<ClosureLister, "list">): Route {
  const parts = { status: 200, type: "application/json", lifetime: "never" } as const;
  return {
    name: "/pins/closures",
    path: "/pins/closures",
    audience: "own-names",
    methods: {
      GET: async ({ head }) => textAnswer(JSON.stringify(await closures.list()), head, parts),
    },
  };
}
