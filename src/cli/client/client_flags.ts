import { boolean } from "../../config/kinds/plain.ts";
import type { Kind, OptionTable, Values } from "../../config/kinds/option.ts";
import { namedToken } from "../../config/kinds/token.ts";
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

/** A line of the server's token file is valid, too. The server wants it without the name. */
const token: Kind<string> = {
  placeholder: "TOKEN",
  parse: (given) => namedToken.parse(given).secret,
  print: (value) => value,
};

/** Flags for the server's address and the token. */
export const CLIENT_FLAGS = {
  server: {
    kind: serverAddress,
    default: { kind: "http", url: "http://localhost:8501" },
    variable: "LARDER_SERVER",
    help: "The running larder to speak to: a URL, or unix:PATH",
  },
  token: {
    kind: token,
    secret: true,
    variable: "LARDER_TOKEN",
    help: "Token to send, if the server needs one for this",
  },
} as const satisfies OptionTable;

export type ClientSettings = Values<typeof CLIENT_FLAGS>;

/** `--json`, for all commands that have it. */
export const JSON_FLAG = {
  kind: boolean,
  default: false,
  help: "Print JSON for programs",
} as const;
