import { visible } from "../base/visible.ts";
import { CLIENT_FLAGS, JSON_FLAG } from "./client/client_flags.ts";
import { type FailedPath, reportFailures } from "./client/each.ts";
import {
  readPathsAndNames,
  type StorePathArgument,
  thoseNamed,
} from "./client/store_path_argument.ts";
import { answerJson } from "./client/server_answer.ts";
import { ServerClient } from "./client/server_client.ts";
import { ServerJson } from "./client/server_json.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { parseArguments } from "./flags.ts";
import { STORE_PATH_ABOUT } from "./pin.ts";
import { counted } from "../base/format_units.ts";
import { hashOfBaseName, isBaseName } from "../nix/store_path.ts";

const FLAGS = { json: JSON_FLAG, ...CLIENT_FLAGS } as const;

/** The server may walk the closures of all pins. */
const ANSWER_LIMIT_MS = 30_000;

export const EXPLAIN: Command = {
  name: "explain",
  summary: "Tell why a request for a path is a hit or a miss",
  operands: "PATH|NAME...",
  about:
    `It prints when larder fetched the NAR file, the upstream that sent it, the last use and the
last eviction. It lists the answer of each upstream, the signatures of the narinfo, and the pins
that reach the path. It prints the path's place in the order of eviction. Answers from before the
start of larder are not recorded.

${STORE_PATH_ABOUT}
NAME is that of a stored package, or a part of it. If several stored paths have that name,
the command lists them and explains none.
`,
  examples: [
    ["larder explain ./result", "Tell why a request for a build is a hit or a miss"],
    ["larder explain firefox", "Explain the only stored firefox, of any version"],
    ["larder explain --json /run/current-system", "Print all facts as JSON, a line for each path"],
  ],
  flags: FLAGS,
  prose: true,
  run: explainCommand,
};

async function explainCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(FLAGS, { ...process, args });
  const { paths, names } = readPathsAndNames(rest, process);
  const targets = [...paths, ...names];
  using client = new ServerClient(flags, process);
  const failures: FailedPath[] = [];
  let gap = "";
  for (const target of targets) {
    const found = typeof target === "string"
      ? await findStored(client, target, ANSWER_LIMIT_MS)
      : target;
    if ("reason" in found) {
      failures.push(found);
      continue;
    }
    const path = encodeURIComponent(found.baseName ?? found.storePathHash);
    const limits = { limitMs: ANSWER_LIMIT_MS };
    const json = await answerJson(client, `/explain?path=${path}`, limits);
    if (flags.json) process.writeOut(`${JSON.stringify(json)}\n`);
    else process.writeOut(gap + textOf(new ServerJson(json)));
    gap = "\n";
  }
  const title = `${failures.length} of ${targets.length} not explained:`;
  return reportFailures(failures, title, process.writeError);
}

function textOf(explanation: ServerJson): string {
  const [hash, name] = [explanation.at("hash").text ?? "", explanation.at("name").text];
  const title = name === undefined ? hash : `${hash}-${name}`;
  const reasons = explanation.at("reasons").list.map((reason) =>
    `  ${visible(reason.text ?? "")}\n`
  );
  return `${visible(title)}\n${reasons.join("")}`;
}

/** Paths in a list for people. */
const LISTED_MAX = 10;

/**
 * The one stored path that has a name, as the status page's search finds it; else why there is
 * none. A name without a version stands for any version, and a part of a name for the whole.
 */
async function findStored(
  client: Pick<ServerClient, "request">,
  given: string,
  limitMs: number,
): Promise<StorePathArgument | FailedPath> {
  const path = `/explain?q=${encodeURIComponent(given)}`;
  const answer = await answerJson(client, path, { limitMs });
  const named = new ServerJson(answer).at("named").list.map((one) => ({
    hash: one.at("hash").text ?? "",
    name: one.at("name").text ?? "",
  }));
  const close = thoseNamed(given, named);
  const matching = (close.length > 0 ? close : named).map(({ hash, name }) => `${hash}-${name}`);
  const [baseName = ""] = matching;
  if (matching.length === 1 && isBaseName(baseName)) {
    return { given, baseName, storePathHash: hashOfBaseName(baseName) };
  }
  return { name: given, reason: reasonOf(matching) };
}

function reasonOf(matching: readonly string[]): string {
  if (matching.length === 0) {
    return "no stored path has such a name; give the store path, or its hash";
  }
  const hidden = matching.length - LISTED_MAX;
  const lines = matching.slice(0, LISTED_MAX).map((path) => `\n    ${path}`);
  const more = hidden > 0 ? `\n    and ${hidden} more: give more of the name` : "";
  const have = counted(matching.length, "stored path has", "stored paths have");
  return `${have} such a name; give one of${lines.join("")}${more}`;
}
