import { statusAnswer } from "../message/answer.ts";
import type { Route } from "./router.ts";

/** `/healthz`: the process answers. */
export const HEALTHZ_ROUTE: Route = {
  name: "/healthz",
  path: "/healthz",
  methods: { GET: ({ head }) => statusAnswer(200, head) },
};

/** `/readyz`: 200, or 503 once the server is stopping. */
export function readyzRoute(isReady: () => boolean): Route {
  return {
    name: "/readyz",
    path: "/readyz",
    methods: { GET: ({ head }) => statusAnswer(isReady() ? 200 : 503, head) },
  };
}
