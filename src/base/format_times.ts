import { formatSpan } from "./format_units.ts";

// Made once: a chart's page formats a thousand values.
const DAYS = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const DATES = new Intl.DateTimeFormat("en-GB", {
  ...{ day: "numeric", month: "long", year: "numeric", timeZone: "UTC" },
});

/** `3 Mar`. */
export function formatDay(atMs: number): string {
  return DAYS.format(atMs);
}

/** `3 March 2026`. */
export function formatDate(atMs: number): string {
  return DATES.format(atMs);
}

/** `12:04 UTC`, with the day unless it is that of `nowMs`. */
export function formatClock(atMs: number, nowMs: number): string {
  const [iso, now] = [new Date(atMs).toISOString(), new Date(nowMs).toISOString()];
  const time = `${iso.slice(11, 16)} UTC`;
  return iso.slice(0, 10) === now.slice(0, 10) ? time : `${formatDay(atMs)} ${time}`;
}

/** The time between two instants: `just now`, `2 min ago`. */
export function formatAgo(atMs: number, nowMs: number): string {
  const seconds = (nowMs - atMs) / 1_000;
  return seconds < 1 ? "just now" : `${formatSpan(seconds)} ago`;
}
