import { Buffer } from "node:buffer";
import { EXIT } from "../base/exit_codes.ts";
import { ConfigError } from "../config/config_error.ts";
import { expectedInstead, type Kind } from "../config/kinds/option.ts";
import { choice } from "../config/kinds/plain.ts";
import { namedToken } from "../config/kinds/token.ts";
import { type Role, ROLES, TOKEN_OPTION } from "../http/message/message.ts";
import { dice } from "../runtime/current.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { parseArguments } from "./flags.ts";

/** Enough that nobody guesses one. */
const SECRET_BYTES = 32;

const role: Kind<Role> = choice(...ROLES);

const FLAGS = {
  role: { kind: role, help: "What the token allows; each role includes those before it" },
} as const;

export const TOKEN: Command = {
  name: "token",
  summary: "Make a token for a client of the server",
  operands: "create NAME",
  about: `It prints NAME:TOKEN on standard output, and where it belongs on standard error. It keeps
nothing.
`,
  examples: [
    [
      "larder token create laptop --role read >> /etc/larder/read-tokens",
      "Add a token to the file of --cache-get-token-file",
    ],
  ],
  flags: FLAGS,
  run: tokenCommand,
};

function tokenCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(FLAGS, { ...process, args });
  const [verb, name = "", ...more] = rest;
  const problems = [
    ...verb === "create" ? [] : [`${JSON.stringify(verb ?? "")}: expected create NAME`],
    ...more.map((word) => `${JSON.stringify(word)}: unexpected argument`),
    ...expectedInstead(namedToken, `${name}:x`) === undefined
      ? []
      : [`${JSON.stringify(name)}: expected a name of letters, digits and ._@-`],
    ...flags.role === undefined ? [`--role: got nothing, expected ${role.placeholder}`] : [],
  ];
  if (problems.length > 0 || flags.role === undefined) throw new ConfigError(problems);
  const secret = `larder-${Buffer.from(dice.bytes(SECRET_BYTES)).toString("base64url")}`;
  process.writeOut(`${namedToken.print({ name, secret })}\n`);
  process.writeError(adviceFor(flags.role));
  return Promise.resolve(EXIT.ok);
}

function adviceFor(given: Role): string {
  const client = given === "admin"
    ? "Commands: put the line into a file, and give its path as --token-file."
    : "Nix: add to its netrc file: machine HOST login larder password TOKEN (behind the colon).";
  return `Server: add this line to the file of ${TOKEN_OPTION[given]}-file, and restart larder.
${client}
`;
}
