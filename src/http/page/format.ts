import { formatAgo, formatClock, formatSpan } from "../../base/format_units.ts";
import { type Html, markup } from "./markup.ts";

// Made once: a chart's page formats a thousand values.
const NUMBERS = new Intl.NumberFormat("en-US");

export function formatNumber(count: number): string {
  return NUMBERS.format(count);
}

/** A share from 0 to 1; an en dash if it is unknown. */
export function formatPercent(part: number | null): string {
  if (part === null) return "–";
  return `${(part * 100).toFixed(part > 0.995 && part < 1 ? 2 : 0)} %`;
}

/** A short duration, as precise as it matters: `41 ms`, `1.9 s`, `12 s`. */
export function formatLatency(ms: number): string {
  if (ms < 999.5) return `${Math.max(0, Math.round(ms))} ms`;
  return ms < 9_950 ? `${(ms / 1_000).toFixed(1)} s` : formatSpan(Math.round(ms / 1_000));
}

/** The time between two instants, for people; the exact one is in the element. */
export function ago(iso: string, at: string): Html {
  return timeElement(iso, formatAgo(Date.parse(iso), Date.parse(at)));
}

/** `12:04 UTC`, with the date unless it is that of `at`. */
export function timeOfDay(iso: string, at: string): Html {
  return timeElement(iso, formatClock(Date.parse(iso), Date.parse(at)));
}

function timeElement(iso: string, shown: string): Html {
  return markup`<time datetime="${iso}" title="${iso}">${shown}</time>`;
}
