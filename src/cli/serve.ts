import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { serverSettings } from "./server_arguments.ts";

/** `larder serve`: resolves when the server has stopped. */
export const SERVE: Command = {
  name: "serve",
  summary: "Run the binary cache server",
  examples: [
    ["larder serve", "Listen on port 8501, and cache paths of cache.nixos.org"],
    [
      "larder serve --server-addr localhost:8080 --cache-storage-local /var/lib/larder",
      "The same for this machine only, with the files in /var/lib/larder",
    ],
  ],
  flags: "server",
  run: serveCommand,
};

async function serveCommand(
  args: readonly string[],
  process: CommandProcess,
): Promise<number> {
  const resolved = await serverSettings(args, process);
  // Loaded here, so that help and errors are fast.
  const { serve } = await import("../app/serve.ts");
  const { confineTo, neededFiles } = await import("../app/confinement.ts");
  confineTo(neededFiles(resolved.settings, (name) => process.env[name]));
  return await serve(resolved);
}
