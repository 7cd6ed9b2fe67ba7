import { wholeNumber } from "../../base/plain_number.ts";
import { isStorePathHash } from "../../nix/store_path.ts";
import { type HeldName, isKeep, isPinName, KEEP_MAX, NAME_FORM } from "../../pins/pin_name.ts";
import type { PinReads } from "../../pins/pin_reads.ts";
import type { Pins } from "../../pins/pins.ts";
import { type Answer, lineAnswer, statusAnswer } from "../message/answer.ts";
import { queryIn } from "../message/query.ts";
import { FLAG_FORM, isFlag, KEEP_COMPLETE, listRoute } from "./pins.ts";
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
    methods: {
      ...list.methods,
      async POST({ request }) {
        const values = valuesIn(request.url, ["name", "keep", "root"], KEEP_COMPLETE);
        if (values === undefined) return bad("name, keep and root, each of them once");
        const { [KEEP_COMPLETE]: keeps } = values;
        if (keeps !== undefined && !isFlag(keeps)) return bad(FLAG_FORM);
        const keepComplete = keeps === undefined ? undefined : keeps === "true";
        const { name = "", keep: keepText, root = "" } = values;
        if (!isPinName(name)) return bad(NAME_FORM);
        const keep = wholeNumber(keepText);
        if (!isKeep(keep)) return bad(`keep from 1 to ${KEEP_MAX}`);
        // As for a plain pin: an invalid hash is never in the cache.
        if (!isStorePathHash(root) || !await pins.roll({ name, keep }, root, keepComplete)) {
          return statusAnswer(404, false);
        }
        return lineAnswer(200, `pinned ${root} under ${name}`);
      },
      async DELETE({ request }) {
        const { name = "" } = valuesIn(request.url, ["name"]) ?? {};
        if (!isPinName(name)) return bad(NAME_FORM);
        if (!await pins.unpinName(name)) return statusAnswer(404, false);
        return lineAnswer(200, `nothing is pinned under ${name}`);
      },
    },
  };
}

/** Its text does not repeat what was given, as that is untrusted. */
function bad(expected: string): Answer {
  return lineAnswer(400, `Bad Request: expected ${expected}`);
}

/** `undefined` unless the query has exactly these names, and perhaps the optional one. */
function valuesIn<Name extends string, Optional extends string = never>(
  url: string,
  names: readonly Name[],
  optional?: Optional,
): Partial<Record<Name | Optional, string>> | undefined {
  const given = [...new URLSearchParams(queryIn(url))];
  const values = Object.fromEntries(given);
  const more = optional !== undefined && Object.hasOwn(values, optional) ? 1 : 0;
  const isExact = given.length === names.length + more &&
    names.every((name) => Object.hasOwn(values, name));
  return isExact ? values as Partial<Record<Name | Optional, string>> : undefined;
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
