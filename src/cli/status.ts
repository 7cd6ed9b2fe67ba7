import { EXIT } from "../base/exit_codes.ts";
import { messageOf } from "../base/failure.ts";
import { boolean } from "../config/kinds/plain.ts";
import { clock } from "../runtime/current.ts";
import { CLIENT_FLAGS, JSON_FLAG, serverAddress } from "./client/client_flags.ts";
import { answerJson } from "./client/server_answer.ts";
import { ServerClient, ServerRefusal } from "./client/server_client.ts";
import { ServerJson } from "./client/server_json.ts";
import type { Command } from "./command.ts";
import { printSettings } from "./config.ts";
import type { CommandProcess } from "./command_process.ts";
import { noOperands, parseArguments } from "./flags.ts";
import { statusScreen } from "./status/status_screen.ts";
import { shownVerdict } from "./status/shown_verdict.ts";

/** Shorter than the time limit of most health checks. */
const ANSWER_LIMIT_MS = 4_000;

const NOT_READY = 503;
const WATCH_EVERY_MS = 2_000;

const FLAGS = {
  watch: { kind: boolean, default: false, help: "Show it again every two seconds" },
  strict: {
    kind: boolean,
    default: false,
    help: "Status 1 also if not all is well, as the second line says",
  },
  config: {
    kind: boolean,
    default: false,
    help: "Print the effective settings instead, as `larder config` does",
  },
  json: JSON_FLAG,
  ...CLIENT_FLAGS,
} as const;

/** `larder status`: for people, and for health checks of containers and scripts. */
export const STATUS: Command = {
  name: "status",
  summary: "Show the state of larder: status 0 if it answers, else 1",
  about: `The exit status needs no token. The figures need the read role: any token,
if the server has read tokens, else none.
`,
  examples: [
    ["larder status", "Show the larder on this machine, on one screen"],
    ["larder status --watch", "Show it again every two seconds"],
    ["larder status --config", "Print the settings of this machine, and where each comes from"],
    ["until larder status >/dev/null; do sleep 1; done", "Wait until larder answers"],
    [
      "larder status --strict --json",
      "Figures for a script, and a status that says if all is well",
    ],
  ],
  flags: FLAGS,
  run: statusCommand,
};

async function statusCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  if (args.some((word) => /^--config(=|$)/.test(word))) {
    return await printSettings(settingsWords(args), process);
  }
  const { flags, rest } = parseArguments(FLAGS, { ...process, args });
  noOperands(rest);
  const server = serverAddress.print(flags.server);
  using client = new ServerClient(flags, process);
  const show = (output: Output) => showOnce({ client, ...flags, server }, output);
  return flags.watch ? await watch(show, process) : await show(process);
}

/** The words behind `--config`, which may name the server's file as it does elsewhere. */
function settingsWords(args: readonly string[]): readonly string[] {
  return args.filter((word, index) => {
    const next = args[index + 1];
    return word !== "--config" || (next !== undefined && !next.startsWith("-"));
  });
}

type Output = Pick<CommandProcess, "writeOut" | "writeError" | "screenSize">;

/** Shows it until the reader leaves. Each screen is whole before it replaces the last one. */
async function watch(
  show: (output: Output) => Promise<number>,
  process: CommandProcess,
): Promise<number> {
  let status: number = EXIT.ok;
  while (!process.isOutputClosed()) {
    let screen = "";
    const write = (text: string) => void (screen += text);
    const output = { ...process, writeOut: write, writeError: write };
    try {
      status = await show(output);
    } catch (error) {
      status = EXIT.failed;
      write(`larder: ${messageOf(error)}\n`);
    }
    process.clearScreen();
    process.writeOut(screen);
    await clock.pause(WATCH_EVERY_MS);
  }
  return status;
}

interface StatusRequest {
  readonly client: ServerClient;
  readonly server: string;
  readonly strict: boolean;
  readonly json: boolean;
  readonly watch: boolean;
}

async function showOnce(request: StatusRequest, process: Output): Promise<number> {
  const { client, server } = request;
  if (!await isReady(client)) {
    process.writeError(`larder: ${server} is stopping: /readyz is 503\n`);
    return EXIT.failed;
  }
  let value: unknown;
  try {
    value = await readStats(client);
  } catch (error) {
    process.writeOut(`larder answers at ${server}\n`);
    process.writeError(`larder: Cannot show figures: ${messageOf(error)}\n`);
    return request.strict ? EXIT.failed : EXIT.ok;
  }
  const stats = new ServerJson(value);
  if (request.json) process.writeOut(`${JSON.stringify(value, null, 2)}\n`);
  else process.writeOut(statusScreen({ server, stats }, process.screenSize(), !request.watch));
  const { isWell } = shownVerdict(stats);
  return isWell || !request.strict ? EXIT.ok : EXIT.failed;
}

async function isReady(client: ServerClient): Promise<boolean> {
  try {
    const response = await client.request("GET", "/readyz", { limitMs: ANSWER_LIMIT_MS });
    await response.body?.cancel();
    return true;
  } catch (error) {
    if (error instanceof ServerRefusal && error.status === NOT_READY) return false;
    throw error;
  }
}

async function readStats(client: ServerClient): Promise<unknown> {
  return await answerJson(client, "/stats", { limitMs: ANSWER_LIMIT_MS });
}
