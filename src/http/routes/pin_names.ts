import { wholeNumber } from "../../base/plain_number.ts";
import { isStorePathHash } from "../../nix/store_path.ts";
import { type HeldName, isKeep, isPinName, KEEP_MAX, NAME_FORM } from "../../pins/pin_name.ts";
import type { PinReads } from "../../pins/pin_reads.ts";
import type { Pins } from "../../pins/pins.ts";
import { type Answer, lineAnswer } from "../message/answer.ts";
import { queryIn } from "../message/query.ts";
import { FLAG_FORM, isFlag, KEEP_COMPLETE, listRoute, NO_HASH, NOT_STORED } from "./pins.ts";
import type { Route } from "./router.ts";

/**
 * The names under which pins roll. `GET /pins/names` lists them. `POST
 * /pins/names?name=NAME&keep=NUMBER&root=HASH` pins a root as the newest one under a name, and
 * `DELETE /pins/names?name=NAME` ends a name.
 */
export function pinNamesRoute(
  reads: Pick<PinReads, "names">,
  pins: Pick<Pins, "roll" | "unpinName">,
): Route {
  const list = listRoute("/pins/names", () => reads.names(), shown);
  return {
    ...list,
    query: { POST: ["name", "keep", "root", KEEP_COMPLETE], DELETE: ["name"] },
    methods: {
      ...list.methods,
      async POST({ request }) {
        const query = new URLSearchParams(queryIn(request.url));
        const [name, keepText, root] = ["name", "keep", "root"].map((one) => query.get(one));
        if (name == null || keepText == null || root == null) {
          return bad("name, keep and root, each of them once");
        }
        const keeps = query.get(KEEP_COMPLETE);
        if (keeps !== null && !isFlag(keeps)) return bad(FLAG_FORM);
        const keepComplete = keeps === null ? undefined : keeps === "true";
        if (!isPinName(name)) return bad(NAME_FORM);
        const keep = wholeNumber(keepText);
        if (!isKeep(keep)) return bad(`keep from 1 to ${KEEP_MAX}`);
        // As for a plain pin: an invalid hash is never in the cache.
        if (!isStorePathHash(root)) return lineAnswer(404, NO_HASH);
        if (!await pins.roll({ name, keep }, root, keepComplete)) {
          return lineAnswer(404, NOT_STORED);
        }
        return lineAnswer(200, `pinned ${root} under ${name}`);
      },
      async DELETE({ request }) {
        const name = new URLSearchParams(queryIn(request.url)).get("name") ?? "";
        if (!isPinName(name)) return bad(NAME_FORM);
        if (!await pins.unpinName(name)) return lineAnswer(404, "Not Found: nothing is under it");
        return lineAnswer(200, `nothing is pinned under ${name}`);
      },
    },
  };
}

/** Its text does not repeat what was given, as that is untrusted. */
function bad(expected: string): Answer {
  return lineAnswer(400, `Bad Request: expected ${expected}`);
}

function shown({ name, keep, roots }: HeldName): unknown {
  return {
    name,
    keep,
    roots: roots.map(({ storePathHash, pinnedAtMs }) => (
      { root: storePathHash, pinned_at: new Date(pinnedAtMs).toISOString() }
    )),
  };
}
