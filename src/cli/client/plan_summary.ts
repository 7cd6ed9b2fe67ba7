import type { PlannedEntry } from "./closure_plan.ts";
import type { AnsweredUpstream } from "./plan_answer.ts";

/** NARs that Nix fetches at a time, by its default of max-substitution-jobs. */
const AT_A_TIME = 16;

/** The figures of a plan. Paths with the same NAR file have its bytes once. */
export interface PlanSummary {
  readonly paths: number;
  readonly here: { readonly paths: number; readonly bytes: number };
  readonly upstream: UpstreamPart;
  readonly nowhere: {
    readonly paths: number;
    /** Those of which the plan knows no `.drv`: a client can build none of them by the plan. */
    readonly withoutDerivation: number;
  };
  readonly unknown: { readonly paths: number };
}

interface UpstreamPart {
  readonly paths: number;
  readonly nars: number;
  readonly bytes: number;
  /**
   * Time for the bytes of measured upstreams, one after the other, and for the answers, of which
   * Nix waits for 16 at a time. `undefined` without any.
   */
  readonly seconds: number | undefined;
  /** Bytes of upstreams that have sent no NAR of some size since the start of the server. */
  readonly unmeasuredBytes: number;
}

export function summaryOf(
  entries: readonly PlannedEntry[],
  upstreams: readonly AnsweredUpstream[],
): PlanSummary {
  const of = (state: PlannedEntry["state"]) => entries.filter((entry) => entry.state === state);
  const [here, upstream, nowhere] = [of("here"), of("upstream"), of("nowhere")];
  return {
    paths: entries.length,
    here: { paths: here.length, bytes: bytesOf(narsOf(here)) },
    upstream: { paths: upstream.length, ...transferOf(narsOf(upstream), upstreams) },
    nowhere: {
      paths: nowhere.length,
      withoutDerivation: nowhere.filter(({ derivation }) => derivation === undefined).length,
    },
    unknown: { paths: of("unknown").length },
  };
}

function transferOf(
  nars: readonly PlannedEntry[],
  upstreams: readonly AnsweredUpstream[],
): Omit<UpstreamPart, "paths"> {
  const measured = new Map(upstreams.map((one) => [one.url, one]));
  let seconds: number | undefined;
  let unmeasuredBytes = 0;
  for (const { bytes = 0, upstreams: [sender = ""] } of nars) {
    const { bytesPerSecond: rate = 0, latencyMs = 0 } = measured.get(sender) ?? {};
    if (rate <= 0) unmeasuredBytes += bytes;
    else seconds = (seconds ?? 0) + bytes / rate + Math.max(0, latencyMs) / 1_000 / AT_A_TIME;
  }
  return {
    nars: nars.length,
    bytes: bytesOf(nars),
    seconds: seconds === undefined ? undefined : Math.round(seconds * 10) / 10,
    unmeasuredBytes,
  };
}

/** One entry of each NAR file. */
function narsOf(entries: readonly PlannedEntry[]): readonly PlannedEntry[] {
  return [...new Map(entries.map((entry) => [entry.nar ?? entry.hash, entry])).values()];
}

function bytesOf(nars: readonly PlannedEntry[]): number {
  return nars.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
}
