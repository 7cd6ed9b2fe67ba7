import { Notifier } from "../base/notifier.ts";
import type { GcEvent, GcOrder, GcProgress } from "./gc_event.ts";
import type { Space } from "./space.ts";

/**
 * The events of a requested run. Ending the iteration early ends the run after its batch.
 * `undefined`: there is neither a limit nor a target.
 */
export function gcEvents(
  space: Pick<Space, "collect" | "budget">,
  order: GcOrder,
): AsyncIterable<GcEvent> | undefined {
  const changed = new Notifier();
  let [latest, wanted]: [GcProgress | undefined, boolean] = [undefined, true];
  const run = space.collect(order, {
    isWanted: () => wanted,
    progress({ freedBytes, evictedEntries }) {
      const { usedBytes } = space.budget;
      latest = { event: "progress", freedBytes, evictedEntries, usedBytes };
      changed.notify();
    },
  });
  return run && events();

  async function* events(): AsyncGenerator<GcEvent> {
    let over = false;
    const ended = run?.finally(() => {
      over = true;
      changed.notify();
    });
    try {
      while (!over) {
        await changed.notified();
        if (latest !== undefined && !over) yield latest;
        latest = undefined;
      }
      if (ended !== undefined) yield await ended;
    } finally {
      wanted = false;
    }
  }
}
