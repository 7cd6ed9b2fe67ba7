import { EXIT } from "../base/exit_codes.ts";
import { counted } from "../base/format_units.ts";
import { ConfigError } from "../config/config_error.ts";
import { type DatabaseUrl, databaseUrl } from "../config/kinds/database_url.ts";
import { expectationOf } from "../config/kinds/option.ts";
import { unexpectedArguments } from "../config/sources/flags.ts";
import type { DatabaseMoved, KeyPlace } from "../app/migrate_database.ts";
import type { CopyProgress } from "../metadata/copy_metadata.ts";
import { StatusLine } from "./client/status_line.ts";
import type { CommandProcess } from "./command_process.ts";
import type { ServerArguments } from "./server_arguments.ts";

/** `larder migrate database`. It reads no settings. */
export async function migrateDatabaseCommand(
  { own: [from, to, ...more], server }: ServerArguments,
  process: CommandProcess,
): Promise<number> {
  const problems: string[] = [];
  const places = [from, to].map((given) => placeOf(given, problems));
  problems.push(...unexpectedArguments([...more, ...server]));
  const [source, target] = places;
  if (problems.length > 0 || source === undefined || target === undefined) {
    throw new ConfigError(problems);
  }
  // Loaded here, so that help and errors are fast.
  const { migrateDatabase } = await import("../app/migrate_database.ts");
  const { stopWatch } = await import("../app/lifecycle.ts");
  using stopping = stopWatch();
  const { signal } = stopping;
  let copy: { readonly progress: CopyProgress } | undefined;
  let moved: DatabaseMoved;
  try {
    using _status = new StatusLine(process, () => progressLine(copy?.progress));
    const started = (one: typeof copy) => copy = one;
    moved = await migrateDatabase({ from: source, to: target, signal, started });
  } catch (error) {
    if (!signal.aborted) throw error;
    process.writeError("larder: stopped; run it again to go on\n");
    return EXIT.failed;
  }
  process.writeOut(reportOf(moved));
  return moved.isSame ? EXIT.ok : EXIT.failed;
}

function placeOf(given: string | undefined, problems: string[]): DatabaseUrl | undefined {
  try {
    return databaseUrl.parse(given ?? "");
  } catch (error) {
    const shown = given === undefined ? "nothing" : JSON.stringify(databaseUrl.redact?.(given));
    problems.push(`migrate: got ${shown}, expected ${expectationOf(error)}`);
    return undefined;
  }
}

function progressLine(progress: CopyProgress | undefined): string {
  if (progress === undefined) return "opening the databases";
  return `${counted(progress.compared, "row")} compared, ${changed(progress)}`;
}

function changed({ copied, removed }: Pick<CopyProgress, "copied" | "removed">): string {
  return removed === 0 ? `${copied} copied` : `${copied} copied, ${removed} removed`;
}

function reportOf({ copied, removed, compared, isSame, key }: DatabaseMoved): string {
  const result = isSame ? "both databases are the same" : "the old one goes on changing";
  const gone = removed === 0 ? "" : `, ${removed} removed`;
  const keyLine = key === undefined ? "" : keyLineOf(key);
  return `${counted(copied, "row")} copied${gone}, ${compared} compared: ${result}.\n${keyLine}`;
}

/** Clients trust the key: a larder that does not find it would make another one. */
function keyLineOf(key: KeyPlace): string {
  if (key === "elsewhere") {
    return "The signing key is not beside the old database. A larder with another storage needs " +
      "--cache-secret-key-path=FILE.\n";
  }
  const option = `--cache-secret-key-path=${key.path}`;
  return `The signing key is in ${key.path}. A larder with another storage needs ${option}.\n`;
}
