import type { Kind } from "./option.ts";

const HOST_NAME_REGEXP = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9.])?$/;

/** A name that browsers may send as `Host`, without its port. */
export const hostName: Kind<string> = {
  placeholder: "HOST",
  parse(given) {
    if (!HOST_NAME_REGEXP.test(given)) {
      throw new Error("a host name without scheme and port, such as cache.example.org");
    }
    return given;
  },
  print: (value) => value,
};
