import type { Kind } from "../../config/kinds/option.ts";
import { hideCredentials, HTTP_URL_REGEXP } from "../../config/kinds/upstream_url.ts";

/** The address of a running larder. */
export type ServerAddress =
  /** The URL has no final slash. */
  | { readonly kind: "http"; readonly url: string }
  | { readonly kind: "unix"; readonly path: string };

const EXPECTED = "a URL such as http://localhost:8501, or unix:/path";

/** `http://localhost:8501` or `unix:/run/larder.sock`. */
export const serverAddress: Kind<ServerAddress> = {
  placeholder: "URL",

  parse(given) {
    if (given.startsWith("unix:")) {
      const path = given.slice("unix:".length);
      if (path === "" || path.includes("\0")) throw new Error(EXPECTED);
      return { kind: "unix", path };
    }
    const isPlain = HTTP_URL_REGEXP.test(given) && !given.includes("?");
    const parsed = isPlain ? URL.parse(given) : null;
    if (parsed === null) throw new Error(EXPECTED);
    if (parsed.username !== "" || parsed.password !== "") {
      throw new Error("a URL without user and password; a token goes into --token-file");
    }
    return { kind: "http", url: `${parsed.origin}${parsed.pathname.replace(/\/+$/, "")}` };
  },

  print: (address) => address.kind === "unix" ? `unix:${address.path}` : address.url,

  redact: hideCredentials,
};
