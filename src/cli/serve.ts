import { readSettings } from "../config/settings.ts";
import type { Host } from "./host.ts";

/** `larder serve`: resolves when the server has stopped. */
export async function serveCommand(args: readonly string[], host: Host): Promise<number> {
  const { settings, warnings } = await readSettings({ ...host, args });
  for (const warning of warnings) host.writeError(`larder: ${warning}\n`);
  // Loaded here, so that help and mistakes do not wait for the whole server to load.
  const { serve } = await import("../app/serve.ts");
  return await serve(settings);
}
