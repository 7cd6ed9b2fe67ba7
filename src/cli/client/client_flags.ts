import { boolean } from "../../config/kinds/plain.ts";
import type { Kind, OptionTable, Values } from "../../config/kinds/option.ts";
import { serverAddress } from "./server_address.ts";

/** Visible ASCII, as it can stand in a header. */
const TOKEN_REGEXP = /^[!-~]+$/;

const token: Kind<string> = {
  placeholder: "TOKEN",
  parse(given) {
    if (!TOKEN_REGEXP.test(given)) throw new Error("a token of visible characters, without spaces");
    return given;
  },
  print: (value) => value,
};

/** How the commands that speak to a running server find it, and who they are to it. */
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
    help: "Token to show, where the server wants one for this",
  },
} as const satisfies OptionTable;

export type ClientSettings = Values<typeof CLIENT_FLAGS>;

/** `--json`, wherever there is one. */
export const JSON_FLAG = {
  kind: boolean,
  default: false,
  help: "Print JSON for programs",
} as const;
