import { EXIT } from "../base/exit_codes.ts";
import { CLIENT_FLAGS } from "./client/client_flags.ts";
import { serverAddress } from "./client/server_address.ts";
import { ServerClient, ServerRefusal } from "./client/server_client.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { noOperands, readWords } from "./flags.ts";

/** Shorter than the time limit of most health checks. */
const ANSWER_LIMIT_MS = 4_000;

const NOT_READY = 503;

/** `larder status`: for health checks of containers and scripts. */
export const STATUS: Command = {
  name: "status",
  summary: "Tell whether a larder answers: status 0 if it does, else 1",
  examples: [
    ["larder status", "Ask the one on this machine"],
    ["until larder status; do sleep 1; done", "Wait for it"],
  ],
  flags: CLIENT_FLAGS,
  run: statusCommand,
};

async function statusCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = readWords(CLIENT_FLAGS, { ...process, args });
  noOperands(rest);
  const shown = serverAddress.print(flags.server);
  using client = new ServerClient(flags, process);
  try {
    const response = await client.request("GET", "/readyz", { limitMs: ANSWER_LIMIT_MS });
    await response.body?.cancel();
    process.writeOut(`larder answers at ${shown}\n`);
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof ServerRefusal) || error.status !== NOT_READY) throw error;
    process.writeError(`larder: ${shown} is stopping: /readyz is 503\n`);
    return EXIT.failed;
  }
}
