// Confines itself to the settings in its arguments, makes the attempts in its variable, and prints
// those that Deno did not refuse.
import { confineTo, neededFiles } from "../../src/app/confinement.ts";
import { resolveSettings } from "../../src/config/settings.ts";
import { inputsOf } from "./config_inputs.ts";

/** Paths to read, and to write. */
export interface Attempts {
  readonly read: readonly string[];
  readonly write: readonly string[];
}

if (import.meta.main) {
  const { read, write }: Attempts = JSON.parse(Deno.env.get("ATTEMPTS") ?? "");
  const { settings } = resolveSettings(inputsOf({ args: Deno.args }));
  confineTo(neededFiles(settings, (name) => Deno.env.get(name)));
  const allowed = [
    ...read.filter((path) => isAllowed(() => Deno.statSync(path))),
    ...write.filter((path) => isAllowed(() => Deno.writeTextFileSync(path, ""))),
  ];
  console.log(JSON.stringify(allowed));
}

function isAllowed(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return false;
    throw error;
  }
}
