import { wholeNumber } from "../../base/plain_number.ts";
import type { GcEvent, GcOrder } from "../../space/gc_event.ts";
import { lineAnswer, queryIn } from "../message/message.ts";
import { eventsAnswer } from "./event_lines.ts";
import type { Route } from "./router.ts";

export interface GcRouteDeps {
  /**
   * Starts a run; `undefined` without a limit or target. Ending the iteration early stops the run,
   * with nothing half done. A failing run logs its reason.
   */
  readonly gc: (order: GcOrder) => AsyncIterable<GcEvent> | undefined;
}

/** `POST /gc?target=BYTES&dry-run=true`: evicts, and streams its progress as JSON lines. */
export function gcRoute({ gc }: GcRouteDeps): Route {
  return {
    name: "/gc",
    path: "/gc",
    inPieces: true,
    query: { POST: ["target", "dry-run"] },
    methods: {
      async POST({ request }) {
        const order = readOrder(new URLSearchParams(queryIn(request.url)));
        if (typeof order === "string") return lineAnswer(400, `Bad Request: expected ${order}`);
        const events = gc(order);
        if (events === undefined) {
          return lineAnswer(400, "Bad Request: expected target, as larder has no size limit");
        }
        return await eventsAnswer(events);
      },
    },
  };
}

/** The order, or what is expected instead of a bad value. */
function readOrder(query: URLSearchParams): GcOrder | string {
  const [target, dryRun = "false"] = [query.get("target"), query.get("dry-run") ?? undefined];
  const targetBytes = wholeNumber(target);
  if (target !== null && targetBytes === undefined) return "target, a number of bytes";
  if (dryRun !== "true" && dryRun !== "false") return "dry-run true or false";
  return { dryRun: dryRun === "true", ...targetBytes === undefined ? {} : { targetBytes } };
}
