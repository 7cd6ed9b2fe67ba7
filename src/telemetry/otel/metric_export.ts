import { messageOf } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";
import type { Snapshot } from "../families.ts";
import type { Period } from "./metric_data.ts";

export interface MetricExportDeps {
  readonly snapshot: () => readonly Snapshot[];
  /** Rejects if the export failed. Must have its own timeout. */
  readonly send: (snapshots: readonly Snapshot[], period: Period) => Promise<void>;
  readonly dropped: (count: number, reason: string) => void;
  readonly delivered: () => void;
  readonly everyMs: number;
  readonly nowMs: () => number;
}

export interface MetricExport {
  /** Resolves once the last values are sent or lost. */
  stop(): Promise<void>;
}

/** Exports all metrics at an interval, one export at a time: a slow receiver gets fewer. */
export function startMetrics(deps: MetricExportDeps): MetricExport {
  const { snapshot, dropped, delivered, nowMs } = deps;
  const startMs = nowMs();
  let sending: Promise<void> | undefined;
  const send = async () => {
    const snapshots = snapshot();
    try {
      await deps.send(snapshots, { startMs, endMs: nowMs() });
      delivered();
    } catch (error) {
      dropped(snapshots.length, messageOf(error));
    }
  };
  const timer = clock.every(deps.everyMs, () => {
    sending ??= send().finally(() => sending = undefined);
  });
  return {
    async stop() {
      timer.cancel();
      await sending;
      await send();
    },
  };
}
