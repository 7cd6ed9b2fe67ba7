import { Cron } from "croner";
import type { Kind } from "./option.ts";
import { duration } from "./duration.ts";

/** A recurring time. */
export type Schedule =
  | { readonly kind: "cron"; readonly cron: string }
  /** ncps writes `@every 1h`. */
  | { readonly kind: "every"; readonly everyMs: number };

const EVERY_REGEXP = /^@every\s+(.*)$/;

/** A cron expression (minute, hour, day, month, weekday), or `@every` and a duration. */
export const schedule: Kind<Schedule> = {
  placeholder: "CRON",

  parse(text) {
    const every = EVERY_REGEXP.exec(text)?.[1];
    if (every !== undefined) return { kind: "every", everyMs: duration.parse(every) };
    try {
      new Cron(text, { paused: true });
      return { kind: "cron", cron: text };
    } catch {
      throw new Error('a cron schedule such as "0 3 * * *", "@daily" or "@every 1h"');
    }
  },

  print: (value) => value.kind === "cron" ? value.cron : `@every ${duration.print(value.everyMs)}`,
};

/** Go's name for the time zone of the machine. */
export const LOCAL_TIME = "Local";

/** A name of the IANA time zone database, or `Local`. */
export const timeZone: Kind<string> = {
  placeholder: "ZONE",

  parse(text) {
    if (text === LOCAL_TIME) return text;
    try {
      new Intl.DateTimeFormat("en", { timeZone: text });
      return text;
    } catch {
      throw new Error("a time zone such as UTC, Europe/Berlin or Local");
    }
  },

  print: (text) => text,
};
