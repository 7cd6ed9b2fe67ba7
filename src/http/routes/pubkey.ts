import { statusAnswer, textAnswer } from "../message/answer.ts";
import type { Route } from "./router.ts";

/** The key for a client's `trusted-public-keys`; 404 if this cache does not sign. */
export function pubkeyRoute(publicKey: string | undefined): Route {
  const parts = { status: 200, type: "text/plain", lifetime: "settings" } as const;
  return {
    name: "/pubkey",
    path: "/pubkey",
    methods: {
      GET: ({ head }) =>
        publicKey === undefined
          ? statusAnswer(404, head)
          : textAnswer(`${publicKey}\n`, head, parts),
    },
  };
}
