import type { Kind } from "./option.ts";

// In the order of writing.
const UNITS = [["h", 3_600_000], ["m", 60_000], ["s", 1_000], ["ms", 1]] as const;

/**
 * The longest duration: 24 days.
 *
 * A timer of more than 2^31 - 1 ms (24.8 days) fires at once.
 */
export const DURATION_MS_MAX = 24 * 24 * 3_600_000;

const PART = String.raw`\d+(?:\.\d+)?`;
const DURATION_REGEXP = new RegExp(
  `^(?:(${PART})h)?(?:(${PART})m)?(?:(${PART})s)?(?:(${PART})ms)?$`,
);

/** A duration such as `1h30m`, in milliseconds. */
export const duration: Kind<number> = durationFrom(1, "a duration such as 30s, 5m or 1h30m");

/** A duration; `0s` means "off". */
export const durationOrOff: Kind<number> = durationFrom(
  0,
  "a duration such as 30s, 5m or 1h30m, or 0s",
);

/** The longest retention: a century. */
const RETENTION_DAYS_MAX = 36_500;

const DAY_MS = 24 * 3_600_000;

const DAYS_REGEXP = new RegExp(`^(?:(${PART})d)?(.*)$`);

/**
 * A retention time such as `180d`, at least a day; `0s` is for ever. No timer waits for it, so it
 * may exceed `DURATION_MS_MAX`.
 */
export const retention: Kind<number> = {
  placeholder: "TIME",
  bare: "number",
  parse(given) {
    if (given === "0") return 0;
    const [, days, rest = ""] = DAYS_REGEXP.exec(given) ?? [];
    const restMs = rest === "" && days !== undefined ? 0 : millisecondsOf(rest);
    const ms = restMs === undefined ? undefined : Number(days ?? 0) * DAY_MS + restMs;
    if (ms === undefined || (ms < DAY_MS && ms !== 0)) {
      throw new Error("a day or more, such as 30d or 36h, or 0s");
    }
    if (ms > RETENTION_DAYS_MAX * DAY_MS) throw new Error(`at most ${RETENTION_DAYS_MAX}d`);
    return Math.round(ms);
  },
  print(ms) {
    const days = Math.floor(ms / DAY_MS);
    const restMs = ms % DAY_MS;
    return `${days > 0 ? `${days}d` : ""}${restMs > 0 || days === 0 ? print(restMs) : ""}`;
  },
};

function durationFrom(minMs: number, expected: string): Kind<number> {
  return {
    placeholder: "TIME",
    bare: "number",
    parse(given) {
      const ms = given === "0" ? 0 : millisecondsOf(given);
      if (ms === undefined || ms < minMs) throw new Error(expected);
      if (ms > DURATION_MS_MAX) throw new Error(`at most ${print(DURATION_MS_MAX)}`);
      return ms;
    },
    print,
  };
}

function millisecondsOf(text: string): number | undefined {
  const match = DURATION_REGEXP.exec(text);
  if (text === "" || match === null) return undefined;
  const ms = UNITS.reduce((sum, [, unitMs], at) => sum + Number(match[at + 1] ?? 0) * unitMs, 0);
  return Math.round(ms);
}

function print(ms: number): string {
  // "90s" reads better than "1m30s".
  if (ms < 2 * 60_000 && ms % 1_000 === 0) return `${ms / 1_000}s`;
  let restMs = ms;
  let text = "";
  for (const [unit, unitMs] of UNITS) {
    const count = Math.floor(restMs / unitMs);
    if (count > 0) text += `${count}${unit}`;
    restMs -= count * unitMs;
  }
  return text;
}
