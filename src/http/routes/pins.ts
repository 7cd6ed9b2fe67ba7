import type { Bytes } from "../../base/bytes.ts";
import type { Waiter } from "../../base/read_turns.ts";
import { bothNames } from "../../base/snake_names.ts";
import type { StorePathNames } from "../../cache/store_path_names.ts";
import { isStorePathHash } from "../../nix/store_path.ts";
import type { PinReads } from "../../pins/pin_reads.ts";
import type { Pins } from "../../pins/pins.ts";
import { lineAnswer, statusAnswer, textAnswer } from "../message/answer.ts";
import { waiterOf } from "./explain.ts";
import type { Route } from "./router.ts";

const PIN_REGEXP = /^\/pin\/([^/]*)\.narinfo$/;

/** Pins and unpins a closure. An invalid hash is never in the cache: POST gives 404, DELETE 200. */
export function pinRoute(
  pins: Pick<Pins, "pin" | "unpin">,
  names: Pick<StorePathNames, "ofPath">,
): Route {
  return {
    name: "/pin/{hash}.narinfo",
    path: PIN_REGEXP,
    async describe(path) {
      const root = PIN_REGEXP.exec(path)?.[1] ?? "";
      const name = isStorePathHash(root) ? await names.ofPath(root) : undefined;
      return name === undefined ? {} : { name };
    },
    methods: {
      async POST({ params: [root = ""] }) {
        if (!isStorePathHash(root) || !await pins.pin(root)) return statusAnswer(404, false);
        return lineAnswer(200, `pinned ${root}`);
      },
      async DELETE({ params: [root = ""] }) {
        // Not repeated in the answer: the text is untrusted.
        if (!isStorePathHash(root)) return lineAnswer(200, "not pinned");
        await pins.unpin(root);
        return lineAnswer(200, `not pinned ${root}`);
      },
    },
  };
}

/** The pin roots as a JSON array of store path hashes, in the order of pinning. */
export function pinsRoute(reads: Pick<PinReads, "pins">): Route {
  return listRoute("/pins", () => reads.pins(), ({ storePathHash }) => storePathHash);
}

/** The pin roots and the stored part of their closures, in the order of pinning. */
export function pinnedClosuresRoute(reads: Pick<PinReads, "closures">): Route {
  return listRoute("/pins/closures", (waiter) => reads.closures(waiter), bothNames);
}

/** A list that may be long: those who get the same one share its bytes. */
export function listRoute<Item>(
  path: string,
  list: (waiter: Waiter) => Promise<readonly Item[]>,
  shown: (item: Item) => unknown,
): Route {
  const parts = { status: 200, type: "application/json", lifetime: "never" } as const;
  const bytesOf = new WeakMap<readonly Item[], Bytes>();
  return {
    name: path,
    path,
    audience: "own-names",
    methods: {
      async GET({ request, head }) {
        const items = await list(waiterOf(request));
        const bytes = bytesOf.get(items) ??
          new TextEncoder().encode(JSON.stringify(items.map((item) => shown(item))));
        bytesOf.set(items, bytes);
        return textAnswer(bytes, head, parts);
      },
    },
  };
}
