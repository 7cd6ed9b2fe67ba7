import type { Pins } from "../../pins/pins.ts";
import { textAnswer } from "../message/answer.ts";
import type { Route } from "./router.ts";

/** The pin roots as a JSON array of store path hashes, in the order of pinning. */
export function pinsRoute(pins: Pick<Pins, "list">): Route {
  const parts = { status: 200, type: "application/json", lifetime: "never" } as const;
  return {
    name: "/pins",
    path: "/pins",
    audience: "own-names",
    methods: {
      GET: async ({ head }) => textAnswer(JSON.stringify(await pins.list()), head, parts),
    },
  };
}
