import { readSettings } from "../config/settings.ts";
import type { CommandProcess } from "./command_process.ts";

/** `larder serve`: resolves when the server has stopped. */
export async function serveCommand(
  args: readonly string[],
  process: CommandProcess,
): Promise<number> {
  const { settings, warnings } = await readSettings({ ...process, args });
  for (const warning of warnings) process.writeError(`larder: ${warning}\n`);
  // Loaded here, so that help and errors are fast.
  const { serve } = await import("../app/serve.ts");
  const { confineTo, neededFiles } = await import("../app/confinement.ts");
  confineTo(neededFiles(settings, (name) => process.env[name]));
  return await serve(settings);
}
