import type { Stats } from "../stats/stats.ts";
import { textAnswer } from "../message/answer.ts";
import type { Route } from "./router.ts";

/** `/stats`: the figures as JSON, whatever the client accepts. */
export function statsRoute(stats: (client?: string) => Promise<Stats>): Route {
  const parts = { status: 200, type: "application/json", lifetime: "never" } as const;
  return {
    name: "/stats",
    path: "/stats",
    audience: "own-names",
    methods: {
      async GET({ request, head }) {
        return textAnswer(JSON.stringify(await stats(request.peer)), head, parts);
      },
    },
  };
}
