import type { Stats } from "../stats/stats.ts";
import { queryIn, textAnswer } from "../message/message.ts";
import type { StatsQuery } from "../stats/gather_stats.ts";
import type { Route, Routed } from "./router.ts";

/** `/stats`: the figures as JSON, whatever the client accepts; `?range=` picks the history. */
export function statsRoute(stats: (query: StatsQuery) => Promise<Stats>): Route {
  const parts = { status: 200, type: "application/json", lifetime: "never" } as const;
  return {
    name: "/stats",
    path: "/stats",
    audience: "own-names",
    query: { GET: ["range"] },
    methods: {
      async GET(routed) {
        const listsClients = await routed.mayManage();
        const figures = await stats({ ...statsQueryIn(routed), listsClients });
        return textAnswer(statsJson(figures), routed.head, parts);
      },
    },
  };
}

/** Figures as JSON. */
export function statsJson(stats: Stats): string {
  return JSON.stringify(stats);
}

/** The client of a request, and its range of the past. */
export function statsQueryIn({ request }: Pick<Routed, "request">): StatsQuery {
  const range = new URLSearchParams(queryIn(request.url)).get("range") ?? undefined;
  return { client: request.peer, range };
}
