import { EVENTS } from "../../src/telemetry/events.ts";

const SLOW: readonly string[] = [
  EVENTS["upstream-slow"].words,
  EVENTS["upstream-answers-slowly"].words,
  EVENTS["upstream-sends-slowly"].words,
];

/**
 * True for a log line about an upstream that is slow. On real time an upstream of a test is as slow
 * as the machine, so that such a line says nothing. Tests of slow upstreams are on virtual time.
 */
export function isOfSlowness({ msg }: { readonly msg: string }): boolean {
  return SLOW.includes(msg);
}
