import { Notifier } from "../base/notifier.ts";
import type { LimitSource } from "./size_limit.ts";
import type { Space } from "./space.ts";

/** The progress of a run that an operator requested. Sizes are in bytes. */
export interface GcProgress {
  readonly event: "progress";
  readonly freedBytes: number;
  readonly evictedEntries: number;
  readonly usedBytes: number;
}

/** The outcome of such a run; for a dry run, the expected one. Sizes are in bytes. */
export interface GcDone {
  readonly event: "done";
  readonly dryRun: boolean;
  /** The target for the used bytes. */
  readonly targetBytes: number;
  /** `null` without a size limit. */
  readonly limitBytes: number | null;
  readonly limitSource: LimitSource;
  readonly freedBytes: number;
  readonly evictedEntries: number;
  /** NAR files; fewer than entries where entries share a file. */
  readonly evictedFiles: number;
  readonly usedBytes: number;
  readonly reservedBytes: number;
  /** Bytes that a pin protects. */
  readonly pinnedBytes: number;
  /** Bytes of files that were read or written. */
  readonly busyBytes: number;
  readonly reached: boolean;
}

/** Any number of "progress", then one "done". */
export type GcEvent = GcProgress | GcDone;

/** The parameters of a requested run. */
export interface GcOrder {
  /** Default: the target of automatic runs. */
  readonly targetBytes?: number;
  /** True: evicts nothing, and returns the expected outcome. */
  readonly dryRun: boolean;
}

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
