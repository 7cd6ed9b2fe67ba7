import { formerNames } from "../cache/forms/recompressed.ts";
import type { PathRecord } from "../cache/nar/path_record.ts";
import type { StorePathNames } from "../cache/store_path_names.ts";
import { Pulls } from "../history/pulls.ts";
import { parseNarName } from "../nix/nar_name.ts";
import { isStorePathHash } from "../nix/store_path.ts";
import type { AskedUpstreams } from "../upstream/asked_upstreams.ts";
import type { AppParts } from "./app_parts.ts";

export interface PullSubjects {
  readonly names: StorePathNames;
  readonly paths: PathRecord;
  readonly waits: AskedUpstreams;
}

/** Wires the pulls of clients to the names of paths, and to the requests to upstreams. */
export function buildPulls(
  { stores: { metadata }, telemetry: { log } }: AppParts,
  { names, paths, waits }: PullSubjects,
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
    waitsOf: (name, fromMs, toMs) => waits.between(name, fromMs, toMs),
    askedUntil: (name) => waits.endOf(name),
  });
}
