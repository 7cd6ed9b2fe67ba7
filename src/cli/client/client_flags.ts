import { boolean } from "../../config/kinds/plain.ts";
import type { Kind, OptionTable, Values } from "../../config/kinds/option.ts";
import { namedToken } from "../../config/kinds/token.ts";
import { serverAddress } from "./server_address.ts";

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
