import type { Bytes } from "../../base/bytes.ts";
import { wholeNumber } from "../../base/plain_number.ts";
import { bothNames } from "../../base/snake_names.ts";
import { clock } from "../../runtime/current.ts";
import type { GcEvent, GcOrder } from "../../space/gc_event.ts";
import { statusAnswer, streamAnswer } from "../message/answer.ts";
import type { Route } from "./router.ts";
import { queryIn } from "../message/query.ts";

export interface GcRouteDeps {
  /**
   * Starts a run; `undefined` without a limit or target. Ending the iteration early stops the run,
   * with nothing half done. A failing run logs its reason; the client sees a broken answer.
   */
  readonly gc: (order: GcOrder) => AsyncIterable<GcEvent> | undefined;
}

const PROGRESS_EVERY_MS = 1_000;

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

/**
 * The events as they come, not as the client reads them: a stalled client must not block a run for
 * others. A client that leaves ends its run.
 */
function linesOf(events: AsyncIterable<GcEvent>): ReadableStream<Bytes> {
  const encoder = new TextEncoder();
  let gone = false;
  return new ReadableStream({
    start(controller) {
      void send(controller);
    },
    cancel() {
      gone = true;
    },
  });

  async function send(controller: ReadableStreamDefaultController<Bytes>) {
    let sentAtMs = -Infinity;
    try {
      for await (const event of events) {
        if (gone) return;
        const nowMs = clock.nowMs();
        const isFull = (controller.desiredSize ?? 0) <= 0;
        if (event.event === "progress" && (isFull || nowMs - sentAtMs < PROGRESS_EVERY_MS)) {
          continue;
        }
        sentAtMs = nowMs;
        controller.enqueue(encoder.encode(`${JSON.stringify(bothNames(event))}\n`));
        if (event.event === "done") break;
      }
      controller.close();
    } catch (error) {
      // After the status line, only a broken transfer can report an error.
      if (!gone) controller.error(error);
    }
  }
}
