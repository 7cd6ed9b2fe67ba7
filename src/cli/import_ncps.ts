import type { NcpsKey } from "../app/import_ncps.ts";
import { EXIT } from "../base/exit_codes.ts";
import { convertNcps } from "../config/render_ncps.ts";
import type { CommandProcess } from "./command_process.ts";
import { noOperands } from "./flags.ts";
import { fileText, handlingOf, type ImportInputs, onlyOperand, runImport } from "./import_run.ts";

/** `larder import ncps`. */
export async function importNcpsFolder(
  inputs: ImportInputs,
  process: CommandProcess,
): Promise<number> {
  const folder = onlyOperand(inputs.operands, "the storage of an ncps");
  const handling = handlingOf(inputs.flags);
  // Loaded here, so that help and errors are fast.
  const { importNcps } = await import("../app/import_ncps.ts");
  const databaseUrl = inputs.flags.database;
  return await runImport(inputs, process, async ({ settings, watcher, signal }) => {
    const order = { folder, databaseUrl, handling, signal };
    const { progress, key } = await importNcps(settings, order, watcher);
    process.writeOut(keyLine(key));
    return progress;
  });
}

/** `larder import ncps-config`. */
export async function printNcpsConfig(
  { operands, server }: ImportInputs,
  process: CommandProcess,
): Promise<number> {
  const path = onlyOperand(operands, "the configuration file of an ncps");
  noOperands(server);
  const text = fileText(path, process);
  const { toml, problems } = await convertNcps({ path, text, env: process.env });
  process.writeOut(toml);
  for (const problem of problems) process.writeError(`larder: ${problem}\n`);
  return problems.length === 0 ? EXIT.ok : EXIT.failed;
}

function keyLine({ outcome, path, publicKey }: NcpsKey): string {
  const place = path ?? "the database";
  if (outcome === "adopted") return `signing key of the ncps in ${place}: ${publicKey}\n`;
  if (outcome === "none") {
    return "the ncps has no key in its database: give its file with --cache-secret-key-path\n";
  }
  const way = path === undefined
    ? "give its file with --cache-secret-key-path"
    : "remove that file and run it again";
  return `${place} holds another key, and stays: clients need ${publicKey} too, or ${way}\n`;
}
