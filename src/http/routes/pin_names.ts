import { wholeNumber } from "../../base/plain_number.ts";
import { isStorePathHash } from "../../nix/store_path.ts";
import { type HeldName, isKeep, isPinName, KEEP_MAX, NAME_FORM } from "../../pins/pin_name.ts";
import type { PinReads, Pins } from "../../pins/pins.ts";
import { type Answer, lineAnswer, queryIn } from "../message/message.ts";
import { FLAG_FORM, HASH_FORM, isFlag, KEEP_COMPLETE, listRoute, NOT_STORED } from "./pins.ts";
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
        const wanted = ["name", "keep", "root"];
        const [name, keepText, root] = wanted.map((one) => query.get(one));
        if (name == null || keepText == null || root == null) {
          const missing = wanted.filter((one) => !query.has(one)).join(", ");
          return bad(`name, keep and root, each of them once: without ${missing}`);
        }
        const keeps = query.get(KEEP_COMPLETE);
        if (keeps !== null && !isFlag(keeps)) return bad(FLAG_FORM, keeps);
        const keepComplete = keeps === null ? undefined : keeps === "true";
        if (!isPinName(name)) return bad(NAME_FORM, name);
        const keep = wholeNumber(keepText);
        if (!isKeep(keep)) return bad(`keep from 1 to ${KEEP_MAX}`, keepText);
        if (!isStorePathHash(root)) return bad(`root, ${HASH_FORM}`, root);
        if (!await pins.roll({ name, keep }, root, keepComplete)) {
          return lineAnswer(404, NOT_STORED);
        }
        return lineAnswer(200, `pinned ${root} under ${name}`);
      },
      async DELETE({ request }) {
        const name = new URLSearchParams(queryIn(request.url)).get("name") ?? "";
        if (!isPinName(name)) return bad(NAME_FORM, name);
        if (!await pins.unpinName(name)) return lineAnswer(404, "Not Found: nothing is under it");
        return lineAnswer(200, `nothing is pinned under ${name}`);
      },
    },
  };
}

/** What an answer may repeat, though it is untrusted: neither a terminal nor HTML reads it. */
const REPEATED_REGEXP = /^[\w !#$%()*+,./:;=?@^|~-]{1,100}$/;

function bad(expected: string, given = ""): Answer {
  const not = REPEATED_REGEXP.test(given) ? `, not ${given}` : "";
  return lineAnswer(400, `Bad Request: expected ${expected}${not}`);
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
