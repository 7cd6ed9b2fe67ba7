import { formerNames } from "../cache/forms/recompressed.ts";
import type { PathRecord, UpstreamAnswer } from "../cache/nar/path_record.ts";
import type { StorePathNames } from "../cache/store_path_names.ts";
import { Pulls, type WaitedPath } from "../history/pulls.ts";
import { parseNarName } from "../nix/nar_name.ts";
import { isStorePathHash } from "../nix/store_path.ts";
import type { AppParts } from "./app_parts.ts";

/** An answer about a path is recorded about when its client gets the response. */
const RECORDED_WITHIN_MS = 1_000;

export interface PullSubjects {
  readonly names: StorePathNames;
  readonly paths: PathRecord;
}

/** Wires the pulls of clients to the records of upstreams' answers. */
export function buildPulls(
  { nowMs, stores: { metadata }, telemetry: { log } }: AppParts,
  { names, paths }: PullSubjects,
): Pulls {
  return new Pulls({
    keeper: metadata,
    log,
    async nameOf(text) {
      if (isStorePathHash(text)) return await names.ofPath(text) ?? paths.of(text).name;
      const narName = parseNarName(text);
      for (const one of narName === undefined ? [] : [narName, ...formerNames(narName)]) {
        const name = await names.of(one);
        if (name !== undefined) return name;
      }
      return undefined;
    },
    upstreamOf: (path) => upstreamOf(path, paths, nowMs()),
  });
}

function upstreamOf(
  { storePathHash, narName, waitedMs }: WaitedPath,
  paths: PathRecord,
  nowMs: number,
): string | undefined {
  const nar = storePathHash === undefined ? parseNarName(narName ?? "") : undefined;
  if (nar !== undefined) {
    const { senders = [], failures } = paths.ofNar(nar);
    return senders.at(-1) ?? failures.at(-1)?.upstream;
  }
  if (storePathHash === undefined || !isStorePathHash(storePathHash)) return undefined;
  const sinceMs = nowMs - waitedMs - RECORDED_WITHIN_MS;
  const answers = paths.of(storePathHash).answers.filter(({ atMs }) => atMs >= sinceMs);
  return waitedFor(answers, waitedMs)?.upstream;
}

/** The answer that took most of the wait; else one that never came; else the one that was used. */
function waitedFor(
  answers: readonly UpstreamAnswer[],
  waitedMs: number,
): UpstreamAnswer | undefined {
  const [slowest] = answers.toSorted((a, b) => timeOf(b) - timeOf(a));
  if (slowest !== undefined && timeOf(slowest) * 2 >= waitedMs) return slowest;
  const failed = answers.find(({ result }) => !["found", "absent", "down"].includes(result));
  return failed ?? answers.find(({ result }) => result === "found") ??
    (answers.length === 1 ? slowest : undefined);
}

function timeOf({ tookMs = 0, waitedMs = 0 }: UpstreamAnswer): number {
  return Math.max(tookMs, waitedMs);
}
