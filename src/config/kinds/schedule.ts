import { Cron } from "croner";
import type { Kind } from "../option.ts";

/** When something happens again and again, as cron writes it: minute, hour, day, month, weekday. */
export const schedule: Kind<string> = {
  placeholder: "CRON",

  parse(text) {
    try {
      new Cron(text, { paused: true });
      return text;
    } catch {
      throw new Error('a cron schedule such as "0 3 * * *" or "@daily"');
    }
  },

  print: (text) => text,
};

/** A name of the IANA time zone database. */
export const timeZone: Kind<string> = {
  placeholder: "ZONE",

  parse(text) {
    try {
      new Intl.DateTimeFormat("en", { timeZone: text });
      return text;
    } catch {
      throw new Error("a time zone such as UTC or Europe/Berlin");
    }
  },

  print: (text) => text,
};
