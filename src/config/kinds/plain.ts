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

/** A text that the expression matches, kept as it is. */
function matching(placeholder: string, form: RegExp, expected: string): Kind<string> {
  return {
    placeholder,
    parse(given) {
      if (!form.test(given)) throw new Error(expected);
      return given;
    },
    print: (value) => value,
  };
}

/** Any text but an empty one. */
export const text = matching("TEXT", /^[^]/, "some text");

/** A path of the file system. */
export const path = matching("PATH", /^[^\0]+$/, "a path");

/** A path of a URL, with a slash at both ends. */
export const location = matching(
  "/PATH/",
  /^\/(?:[A-Za-z0-9._~-]+\/)+$/,
  "a path such as /larder-nars/",
);

/** A valid name for a signing key, before its colon. */
export const plainName = matching(
  "NAME",
  /^[A-Za-z0-9._-]+$/,
  "a name of letters, digits, dots, dashes and underscores",
);

/** A name that browsers may send as `Host`, without its port. */
export const hostName = matching(
  "HOST",
  /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9.])?$/,
  "a host name without scheme and port, such as cache.example.org",
);

/**
 * The name of an S3 bucket: today's rules, and those for old buckets and of other makers' stores:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
 */
export const bucketName = matching(
  "BUCKET",
  /^[A-Za-z0-9][A-Za-z0-9._-]{2,254}$/,
  "the name of a bucket: 3 to 255 letters, digits, dots, hyphens and underscores, with a letter " +
    "or digit first",
);

/** Permissions of a file in octal, such as `0660`. */
export const fileMode: Kind<number> = {
  placeholder: "MODE",
  parse(given) {
    if (!/^0?[0-7]{3}$/.test(given)) throw new Error("an octal mode such as 0660");
    return parseInt(given, 8);
  },
  print: (mode) => `0${mode.toString(8).padStart(3, "0")}`,
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
