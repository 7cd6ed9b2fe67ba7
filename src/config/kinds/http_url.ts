import type { Kind } from "./option.ts";
import { hideCredentials } from "./upstream_url.ts";

/** An http or https URL of a receiver, without credentials, query and final slash. */
export const httpUrl: Kind<string> = {
  placeholder: "URL",
  parse(given) {
    const url = URL.parse(given);
    const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.username === "" &&
      url.password === "" && url.search === "" && url.hash === "";
    if (!isPlain) throw new Error("an http or https URL without credentials and query");
    return url.href.replace(/\/+$/, "");
  },
  print: (value) => value,
  redact: hideCredentials,
};
