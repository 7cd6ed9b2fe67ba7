import { EXIT } from "../base/exit_codes.ts";
import { visible } from "../base/visible.ts";
import { CLIENT_FLAGS, JSON_FLAG } from "./client/client_flags.ts";
import { ServerClient } from "./client/server_client.ts";
import { readStorePathArguments } from "./client/store_path_argument.ts";
import { Told } from "./client/told.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { readWords } from "./flags.ts";
import { STORE_PATH_ABOUT } from "./pin.ts";

const FLAGS = { json: JSON_FLAG, ...CLIENT_FLAGS } as const;

/** The server may walk the closures of all pins. */
const ANSWER_LIMIT_MS = 30_000;

export const EXPLAIN: Command = {
  name: "explain",
  summary: "Tell why a request for a path is a hit or a miss",
  operands: "PATH...",
  about:
    `It tells what is stored, when larder fetched it and from which upstream, when a client used
it last, and when it was evicted. It also tells what each upstream said and when, who
signed the narinfo, which pins reach the path, and when eviction takes it. What upstreams
said before the start of larder is not recorded.

${STORE_PATH_ABOUT}`,
  examples: [
    ["larder explain ./result", "Tell why the cache had it, or not"],
    ["larder explain --json /run/current-system", "Tell it to programs, one JSON line a path"],
  ],
  flags: FLAGS,
  run: explainCommand,
};

async function explainCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = readWords(FLAGS, { ...process, args });
  const targets = readStorePathArguments(rest, process);
  using client = new ServerClient(flags, process);
  for (const [index, { storePathHash }] of targets.entries()) {
    const path = `/explain?path=${storePathHash}`;
    const answer = await client.request("GET", path, { limitMs: ANSWER_LIMIT_MS });
    const told = await answer.json();
    if (flags.json) process.writeOut(`${JSON.stringify(told)}\n`);
    else process.writeOut(`${index > 0 ? "\n" : ""}${textOf(new Told(told))}`);
  }
  return EXIT.ok;
}

function textOf(told: Told): string {
  const [hash, name] = [told.at("hash").text ?? "", told.at("name").text];
  const title = name === undefined ? hash : `${hash}-${name}`;
  const reasons = told.at("reasons").list.map((reason) => `  ${visible(reason.text ?? "")}\n`);
  return `${visible(title)}\n${reasons.join("")}`;
}
