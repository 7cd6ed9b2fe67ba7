import { clock } from "../runtime/current.ts";
import {
  type BackEnd,
  type OPERATION_OUTCOMES,
  type OperationOf,
  OPERATIONS,
} from "./instruments/operation_labels.ts";
import type { HistogramSeries, Metrics, Series } from "./metrics.ts";

type Outcome = typeof OPERATION_OUTCOMES[number];

export interface OperationFacts {
  /** Its abort cancels the operation, unless a time limit fired it. */
  readonly signal?: AbortSignal | undefined;
  /** True for an error that is an answer, such as an absence. Default: none is. */
  readonly isAnswer?: (error: unknown) => boolean;
}

/** Counts and times the operations of one back end. */
export interface OperationMeter<Operation extends string> {
  /** Runs one operation. */
  run<Value>(
    operation: Operation,
    work: () => Promise<Value>,
    facts?: OperationFacts,
  ): Promise<Value>;
}

/** Counts nothing. */
export const NO_METER: OperationMeter<string> = { run: (_operation, work) => work() };

/** The meter of a back end, whose series exist from now on. */
export function operationMeter<Name extends BackEnd>(
  metrics: Metrics,
  backend: Name,
): OperationMeter<OperationOf<Name>> {
  return new SeriesMeter(metrics, backend);
}

interface OperationSeries {
  readonly count: (outcome: Outcome) => void;
  readonly durations: HistogramSeries;
}

class SeriesMeter implements OperationMeter<string> {
  readonly #series: ReadonlyMap<string, OperationSeries>;

  constructor(metrics: Metrics, backend: BackEnd) {
    this.#series = new Map(OPERATIONS[backend].map((operation) => {
      const labels = { backend, operation };
      const counted = (outcome: Outcome): Series =>
        metrics.series("backend_operations_total", { ...labels, outcome });
      const [ok, failed] = [counted("ok"), counted("failed")];
      return [operation, {
        // A series of cancelled ones begins with the first.
        count: (outcome) =>
          (outcome === "ok" ? ok : outcome === "failed" ? failed : counted(outcome)).count(),
        durations: metrics.histogram("backend_operation_duration_seconds", labels),
      }];
    }));
  }

  async run<Value>(
    operation: string,
    work: () => Promise<Value>,
    { signal, isAnswer = () => false }: OperationFacts = {},
  ): Promise<Value> {
    const startedAtMs = clock.nowMs();
    const end = (outcome: Outcome) => {
      const series = this.#series.get(operation);
      series?.count(outcome);
      // How long a client stays says nothing of the back end.
      if (outcome !== "cancelled") series?.durations.observe((clock.nowMs() - startedAtMs) / 1_000);
    };
    try {
      const value = await work();
      end("ok");
      return value;
    } catch (error) {
      end(isAnswer(error) ? "ok" : isCancelled(signal) ? "cancelled" : "failed");
      throw error;
    }
  }
}

function isCancelled(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true && signal.reason?.name !== "TimeoutError";
}
