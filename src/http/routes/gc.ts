import { wholeNumber } from "../../base/plain_number.ts";
import type { GcEvent, GcOrder } from "../../space/gc_event.ts";
import { statusAnswer, streamAnswer } from "../message/answer.ts";
import { linesOf } from "./event_lines.ts";
import type { Route } from "./router.ts";
import { queryIn } from "../message/query.ts";

export interface GcRouteDeps {
  /**
   * Starts a run; `undefined` without a limit or target. Ending the iteration early stops the run,
   * with nothing half done. A failing run logs its reason; the client sees a broken answer.
   */
  readonly gc: (order: GcOrder) => AsyncIterable<GcEvent> | undefined;
}

/** `POST /gc?target=BYTES&dry-run=true`: evicts, and streams its progress as JSON lines. */
export function gcRoute({ gc }: GcRouteDeps): Route {
  return {
    name: "/gc",
    path: "/gc",
    inPieces: true,
    methods: {
      POST({ request }) {
        const order = readOrder(request.url);
        const events = order && gc(order);
        if (events === undefined) return statusAnswer(400, false);
        const type = "application/x-ndjson";
        return streamAnswer(linesOf(events), { status: 200, type, lifetime: "never" });
      },
    },
  };
}

/** `undefined` for an unknown, bad or repeated parameter. */
function readOrder(url: string): GcOrder | undefined {
  let order: GcOrder = { dryRun: false };
  const seen = new Set<string>();
  for (const [name, value] of new URLSearchParams(queryIn(url))) {
    if (seen.has(name)) return undefined;
    seen.add(name);
    const targetBytes = name === "target" ? wholeNumber(value) : undefined;
    if (targetBytes !== undefined) {
      order = { ...order, targetBytes };
    } else if (name === "dry-run" && (value === "true" || value === "false")) {
      order = { ...order, dryRun: value === "true" };
    } else return undefined;
  }
  return order;
}
