import type { NarRecord } from "../../metadata/metadata_store.ts";

/**
 * How long a narinfo whose NAR is not here is served after an upstream was last seen with it. A
 * client asks for the NAR within minutes, and upstreams lose NARs seldom.
 */
const SEEN_MAX_MS = 60 * 60 * 1_000;

/** True if an upstream was seen with the NAR within the hour, and since its file here was lost. */
export function seenOfLate(
  { seenAtMs = 0 }: NarRecord,
  { nowMs, lostAtMs = 0 }: { readonly nowMs: number; readonly lostAtMs: number | undefined },
): boolean {
  return nowMs - seenAtMs <= SEEN_MAX_MS && seenAtMs > lostAtMs;
}
