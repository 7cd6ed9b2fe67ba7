import type { Kind } from "./option.ts";

/** A boolean; a flag of this kind needs no value. */
export const boolean: Kind<boolean> = {
  placeholder: "true|false",
  bare: "boolean",
  parse(text) {
    if (text === "true" || text === "1") return true;
    if (text === "false" || text === "0") return false;
    throw new Error("true or false");
  },
  print: String,
};

/** Any text but an empty one. */
export const text: Kind<string> = {
  placeholder: "TEXT",
  parse(given) {
    if (given === "") throw new Error("some text");
    return given;
  },
  print: (value) => value,
};

/** A path of the file system, kept as given. */
export const path: Kind<string> = {
  placeholder: "PATH",
  parse(given) {
    if (given === "" || given.includes("\0")) throw new Error("a path");
    return given;
  },
  print: (value) => value,
};

const LOCATION_REGEXP = /^\/(?:[A-Za-z0-9._~-]+\/)+$/;

/** A path of a URL, with a slash at both ends. */
export const location: Kind<string> = {
  placeholder: "/PATH/",
  parse(given) {
    if (!LOCATION_REGEXP.test(given)) throw new Error("a path such as /larder-nars/");
    return given;
  },
  print: (value) => value,
};

const PLAIN_NAME_REGEXP = /^[A-Za-z0-9._-]+$/;

/** A valid name for a signing key, before its colon. */
export const plainName: Kind<string> = {
  placeholder: "NAME",
  parse(given) {
    if (!PLAIN_NAME_REGEXP.test(given)) {
      throw new Error("a name of letters, digits, dots, dashes and underscores");
    }
    return given;
  },
  print: (value) => value,
};

/** A whole number from `min` to `max`, inclusive. */
export function integer(min: number, max: number): Kind<number> {
  return {
    placeholder: "NUMBER",
    bare: "number",
    range: [min, max],
    parse(given) {
      const value = Number(given);
      if (!/^-?\d+$/.test(given) || value < min || value > max) {
        throw new Error(`a whole number from ${min} to ${max}`);
      }
      return value;
    },
    print: String,
  };
}

/** One of the given values. */
export function choice<const Value extends string>(...values: readonly Value[]): Kind<Value> {
  return {
    placeholder: values.join("|"),
    values,
    parse(given) {
      const value = values.find((candidate) => candidate === given);
      if (value === undefined) throw new Error(`one of ${values.join(", ")}`);
      return value;
    },
    print: (value) => value,
  };
}
