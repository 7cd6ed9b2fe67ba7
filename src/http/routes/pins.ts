import type { Bytes } from "../../base/bytes.ts";
import type { Waiter } from "../../base/read_turns.ts";
import { snakeNames } from "../../base/snake_names.ts";
import type { PinLooks } from "../../cache/pinned/pin_looks.ts";
import type { StorePathNames } from "../../cache/nar/store_path_names.ts";
import { isStorePathHash } from "../../nix/store_path.ts";
import { lineAnswer, queryIn, textAnswer } from "../message/message.ts";
import type { PinReads, Pins } from "../../pins/pins.ts";
import { countsWithLook } from "../../pins/pinned_closures.ts";
import { eventsAnswer } from "./event_lines.ts";
import { waiterOf } from "./explain.ts";
import type { Route } from "./router.ts";

/** The parameter of a pin whose closure larder keeps complete. */
export const KEEP_COMPLETE = "keep-complete";

export const FLAG_FORM = `${KEEP_COMPLETE} true or false`;

export function isFlag(text: string): boolean {
  return text === "true" || text === "false";
}

export const HASH_FORM = 'the 32 characters between "/nix/store/" and the name';

/** Neither repeats what was given, as that is untrusted. */
const NO_HASH = `Not Found: this is no store path hash; expected ${HASH_FORM}`;
export const NOT_STORED = "Not Found: no path with this hash is stored; fetch or upload it first";

const PIN_REGEXP = /^\/pin\/([^/]*)\.narinfo$/;

/** Pins and unpins a closure. An invalid hash is never in the cache: POST gives 404, DELETE 200. */
export function pinRoute(
  pins: Pick<Pins, "pin" | "unpin">,
  names: Pick<StorePathNames, "ofPath">,
): Route {
  return {
    name: "/pin/{hash}.narinfo",
    path: PIN_REGEXP,
    query: { POST: [KEEP_COMPLETE] },
    async describe(path) {
      const root = PIN_REGEXP.exec(path)?.[1] ?? "";
      const name = isStorePathHash(root) ? await names.ofPath(root) : undefined;
      return name === undefined ? {} : { name };
    },
    methods: {
      async POST({ params: [root = ""], request }) {
        const keepComplete = new URLSearchParams(queryIn(request.url)).get(KEEP_COMPLETE);
        if (keepComplete !== null && !isFlag(keepComplete)) {
          return lineAnswer(400, `Bad Request: expected ${FLAG_FORM}`);
        }
        const keeps = keepComplete === null ? undefined : keepComplete === "true";
        if (!isStorePathHash(root)) return lineAnswer(404, NO_HASH);
        if (!await pins.pin(root, keeps)) return lineAnswer(404, NOT_STORED);
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
  return listRoute("/pins/closures", (waiter) => reads.closures(waiter), (one) => (
    snakeNames(countsWithLook(one, one.look))
  ));
}

/** `POST /pins/verify`: looks at every pinned closure, and streams what it finds as JSON lines. */
export function verifyPinsRoute(looks: Pick<PinLooks, "verify">): Route {
  return {
    name: "/pins/verify",
    path: "/pins/verify",
    inPieces: true,
    audience: "own-names",
    query: {},
    methods: {
      POST: () => eventsAnswer(looks.verify()),
    },
  };
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
    query: {},
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
