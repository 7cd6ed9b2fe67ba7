import { EXIT } from "../base/exit_codes.ts";
import { visible } from "../base/visible.ts";
import { ConfigError } from "../config/config_error.ts";
import { CLIENT_FLAGS, JSON_FLAG } from "./client/client_flags.ts";
import { answerJson } from "./client/server_answer.ts";
import { ServerClient } from "./client/server_client.ts";
import { ServerJson } from "./client/server_json.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { wrapped } from "../base/wrapped.ts";
import { parseArguments } from "./flags.ts";

const FLAGS = { json: JSON_FLAG, ...CLIENT_FLAGS } as const;

const COLUMNS_MAX = 100;

/** Clients that a message names. */
const CLIENTS_NAMED_MAX = 20;

/** Longer ones name no token and no address. */
const CLIENT_CHARS_MAX = 200;

export const PULLS: Command = {
  name: "pulls",
  summary: "Tell where the time of each client's pull went",
  operands: "[CLIENT]",
  about: `A pull is a burst of requests of one client, which ends after ten seconds of silence.
CLIENT is the name of its token, or its address. The command shows the last 200 pulls, the newest
first: the time that the client waited for each upstream, the time of sending, and the pauses in
which larder had nothing to do. Those that run are in front. The status page draws each pull as a
timeline.
`,
  examples: [
    ["larder pulls", "Show the last pulls of all clients"],
    ["larder pulls laptop", "Show those of the client with the token laptop"],
    [
      "larder pulls --json | jq 'max_by(.waiting_seconds)'",
      "Find the pull that waited longest for upstreams",
    ],
  ],
  flags: FLAGS,
  run: pullsCommand,
};

async function pullsCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(FLAGS, { ...process, args });
  const [client, ...more] = rest;
  if (more.length > 0) {
    throw new ConfigError([`${JSON.stringify(more[0])}: unexpected argument; name one client`]);
  }
  if (client === "" || (client?.length ?? 0) > CLIENT_CHARS_MAX) {
    throw new ConfigError(["CLIENT must be the name of a token or an address, such as 10.0.0.7"]);
  }
  using server = new ServerClient(flags, process);
  const query = client === undefined ? "" : `?client=${encodeURIComponent(client)}`;
  const json = await answerJson(server, `/pulls${query}`);
  if (flags.json) {
    process.writeOut(`${JSON.stringify(json, null, 2)}\n`);
    return EXIT.ok;
  }
  const pulls = new ServerJson(json).list;
  if (pulls.length === 0) {
    process.writeError(
      client === undefined
        ? "no pull yet: one is listed once a client has asked for a path\n"
        : `no pull of ${visible(client)}: ${await knownClients(server)}\n`,
    );
  }
  const columns = Math.min(process.screenSize().columns ?? COLUMNS_MAX, COLUMNS_MAX);
  for (const pull of pulls) {
    process.writeOut(`${wrapped(visible(pull.at("sentence").text ?? ""), columns, 2)}\n`);
  }
  return EXIT.ok;
}

/** Whose pulls there are, for somebody who asked for those of another. */
async function knownClients(server: ServerClient): Promise<string> {
  const all = new ServerJson(await answerJson(server, "/pulls")).list;
  const clients = [...new Set(all.map((pull) => visible(pull.at("client").text ?? "")))];
  if (clients.length === 0) return "no client has any yet";
  const named = clients.slice(0, CLIENTS_NAMED_MAX).join(", ");
  const rest = clients.length - CLIENTS_NAMED_MAX;
  return `there are those of ${named}${rest > 0 ? ` and ${rest} more` : ""}`;
}
