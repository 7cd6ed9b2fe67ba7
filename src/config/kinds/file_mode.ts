import type { Kind } from "./option.ts";

const MODE_REGEXP = /^0?[0-7]{3}$/;

/** Permissions of a file in octal, such as `0660`. */
export const fileMode: Kind<number> = {
  placeholder: "MODE",
  parse(given) {
    if (!MODE_REGEXP.test(given)) throw new Error("an octal mode such as 0660");
    return parseInt(given, 8);
  },
  print: (mode) => `0${mode.toString(8).padStart(3, "0")}`,
};
