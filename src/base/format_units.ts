const SECONDS_PER_MINUTE = 60;
const SECONDS_PER_HOUR = 3_600;
const SECONDS_PER_DAY = 86_400;

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** A number of bytes for people: `1.5 GiB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  let amount = bytes / 1024;
  let unit = 0;
  // Values that round up to the next unit are shown in it, so never "1024.0 KiB".
  while (amount >= 1023.95 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit++;
  }
  return `${amount.toFixed(1)} ${UNITS[unit]}`;
}

/** `1 path`, `2 paths`, `1,234 paths`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : several}`;
}

/** A long duration, in sentences: `4 s`, `1 h 2 min`, `3 d 4 h`. */
export function formatSpan(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < SECONDS_PER_MINUTE) return `${whole} s`;
  if (whole < SECONDS_PER_HOUR) return `${Math.floor(whole / SECONDS_PER_MINUTE)} min`;
  if (whole < SECONDS_PER_DAY) {
    return `${Math.floor(whole / SECONDS_PER_HOUR)} h ${
      Math.floor(whole / SECONDS_PER_MINUTE) % 60
    } min`;
  }
  return `${Math.floor(whole / SECONDS_PER_DAY)} d ${Math.floor(whole / SECONDS_PER_HOUR) % 24} h`;
}

/** A duration for people, in columns: `4s`, `2m05s`, `1h02m`, `3d04h`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const two = (value: number) => String(value).padStart(2, "0");
  if (whole < 60) return `${whole}s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  const hours = Math.floor(whole / 3_600);
  if (hours < 24) return `${hours}h${two(Math.floor(whole / 60) % 60)}m`;
  return `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

/** A duration for people, in columns, to the digits that count: `41ms`, `1.9s`, `12s`, `2m05s`. */
export function formatMs(ms: number): string {
  if (ms < 999.5) return `${Math.max(0, Math.round(ms))}ms`;
  return ms < 9_950 ? `${(ms / 1_000).toFixed(1)}s` : formatSeconds(ms / 1_000);
}

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
