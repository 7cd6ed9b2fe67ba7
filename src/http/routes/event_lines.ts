import type { Bytes } from "../../base/bytes.ts";
import { bothNames } from "../../base/snake_names.ts";
import { clock } from "../../runtime/current.ts";

const PROGRESS_EVERY_MS = 1_000;

/**
 * The events as they come, not as the client reads them: a stalled client must not block a run for
 * others. A client that leaves ends its run.
 */
export function linesOf(
  events: AsyncIterable<{ readonly event: string }>,
): ReadableStream<Bytes> {
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
