import { recordInputs } from "../config/recorded_inputs.ts";
import { readSettings } from "../config/settings.ts";
import type { CommandProcess } from "./command_process.ts";

/** `larder serve`: resolves when the server has stopped. */
export async function serveCommand(
  args: readonly string[],
  process: CommandProcess,
): Promise<number> {
  const { inputs, record } = recordInputs({ ...process, args });
  const { settings, warnings } = await readSettings(inputs);
  for (const warning of warnings) process.writeError(`larder: ${warning}\n`);
  // Loaded here, so that help and errors are fast.
  const { serveConfined } = await import("../app/serve_confined.ts");
  return await serveConfined(settings, record);
}
