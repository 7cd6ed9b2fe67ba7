import { expectationOf, type Kind } from "./option.ts";

// Powers of 1024: the position is the exponent.
const UNITS = ["", "K", "M", "G", "T", "P"] as const;

const SIZE_REGEXP = /^(\d+(?:\.\d+)?)(?:([KMGTP])(?:i?B)?|B)?$/i;

/** A number of bytes, such as `10G`, `10GB` or `10GiB`. A plain number counts bytes. */
export const size: Kind<number> = {
  placeholder: "SIZE",
  bare: "number",

  parse(given) {
    const [, number = "", letter = ""] = SIZE_REGEXP.exec(given) ?? [];
    const exponent = UNITS.findIndex((unit) => unit === letter.toUpperCase());
    const bytes = Math.floor(Number(number) * 1024 ** exponent);
    const isFractionOfByte = exponent === 0 && number.includes(".");
    if (number === "" || isFractionOfByte || !Number.isSafeInteger(bytes)) {
      throw new Error("a size such as 512K, 10G or 1.5T");
    }
    return bytes;
  },

  print(bytes) {
    const exponent = UNITS.findLastIndex((_, power) => bytes % 1024 ** power === 0);
    return bytes === 0 ? "0" : `${bytes / 1024 ** exponent}${UNITS[exponent]}`;
  },
};

/** The size limit of the cache. `auto`: a part of the disk stays free. */
export type SizeLimitOrder = number | "auto" | "unlimited";

const WORDS = ["auto", "unlimited"] as const;

export const sizeLimit: Kind<SizeLimitOrder> = {
  placeholder: "SIZE",
  bare: "number",

  parse(given) {
    const word = WORDS.find((one) => one === given.toLowerCase());
    if (word !== undefined) return word;
    try {
      return size.parse(given);
    } catch (error) {
      throw new Error(`auto, unlimited, or ${expectationOf(error)}`, { cause: error });
    }
  },

  print: (order) => typeof order === "number" ? size.print(order) : order,
};
