import { EXIT } from "../base/exit_codes.ts";
import { counted } from "../base/format_units.ts";
import { readSettings } from "../config/settings.ts";
import {
  CLIENT_FLAGS,
  JSON_FLAG,
  type ServerAddress,
  serverAddress,
} from "./client/client_flags.ts";
import { ServerClient } from "./client/server_client.ts";
import { readStorePathArguments } from "./client/store_path_argument.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import type { Finding, Mark } from "./doctor/finding.ts";
import { parseArguments } from "./flags.ts";
import { STORE_PATH_ABOUT } from "./pin.ts";
import { splitServerArguments } from "./server_arguments.ts";
import type { Settings } from "../config/options.ts";

const FLAGS = {
  server: {
    kind: serverAddress,
    variable: CLIENT_FLAGS.server.variable,
    shown: "where these settings make it listen",
    help: "Address that clients use: a URL, or unix:PATH",
  },
  token: CLIENT_FLAGS.token,
  json: JSON_FLAG,
} as const;

export const DOCTOR: Command = {
  name: "doctor",
  summary: "Check this installation, and name the remedies",
  operands: "[PATH...]",
  about:
    `It reads the settings that \`larder serve\` would read, and changes nothing. Each line has a
mark: ok, warning, failed or not checked. It ends with status 1 if a check failed. Without a running
server it skips the checks that need one. With a PATH, it pulls the path, and compares its
signature at each upstream.

${STORE_PATH_ABOUT}`,
  examples: [
    ["larder doctor --config /etc/larder/config.toml", "Check the installation with that file"],
    ["larder doctor --server https://cache.example.org", "Check it by the address of a proxy"],
  ],
  ownFlags: FLAGS,
  flags: "server",
  prose: true,
  run: doctorCommand,
};

async function doctorCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { own, server: ofServer } = splitServerArguments(FLAGS, args);
  const { flags, rest } = parseArguments(FLAGS, { ...process, args: own });
  const operands = rest.length === 0 ? [] : readStorePathArguments(rest, process);
  const { settings, warnings } = await readSettings({
    ...process,
    ...process.namedFiles,
    args: ofServer,
  });
  // Loaded here, so that help and errors are fast.
  const { diagnose } = await import("./doctor/diagnose.ts");
  // A token of the settings goes to the address of the settings alone.
  const address = flags.server ?? ownAddress(settings);
  const configured = flags.server === undefined ? settings["cache.admin-token"]?.[0] : undefined;
  const token = flags.token ?? configured?.secret;
  using client = address && new ServerClient({ server: address, token }, process);
  const target = address && client && { shown: serverAddress.print(address), client };
  const paths = operands.map(({ storePathHash }) => storePathHash);
  const findings: Finding[] = [];
  const add = (finding: Finding) => {
    findings.push(finding);
    if (!flags.json) process.writeOut(lineOf(finding));
  };
  const advice = "correct it, or leave it out";
  for (const fact of warnings) add({ mark: "warning", subject: "settings", fact, advice });
  for await (const finding of diagnose({ settings, target, paths, host: process })) add(finding);
  process.writeOut(flags.json ? `${JSON.stringify({ findings })}\n` : summaryOf(findings));
  return findings.some(({ mark }) => mark === "failed") ? EXIT.failed : EXIT.ok;
}

const MARK_WIDTH = "not checked".length;

function lineOf({ mark, subject, fact, advice }: Finding): string {
  const line = `${mark.padEnd(MARK_WIDTH)}  ${subject}: ${fact}`;
  return `${advice === undefined ? line : `${line}; ${advice}`}\n`;
}

const MARKS: readonly Mark[] = ["failed", "warning", "not checked", "ok"];

function summaryOf(findings: readonly Finding[]): string {
  const counts = MARKS.flatMap((mark) => {
    const count = findings.filter((one) => one.mark === mark).length;
    return count === 0 ? [] : counted(count, mark, mark === "warning" ? "warnings" : mark);
  });
  return `${counts.join(", ")}\n`;
}

/**
 * Where a server with these settings answers on its own machine. `undefined`: on a port of its
 * choice, or only behind a proxy that sends PROXY headers.
 */
function ownAddress(settings: Settings): ServerAddress | undefined {
  const address = settings["server.addr"];
  if (settings["server.proxy-protocol"]) return undefined;
  if (address.kind === "unix") return { kind: "unix", path: address.path };
  if (address.port === 0) return undefined;
  const scheme = settings["server.tls-cert"] === undefined ? "http" : "https";
  return { kind: "http", url: `${scheme}://${hostOf(address.hostname)}:${address.port}` };
}

function hostOf(hostname: string | undefined): string {
  if (hostname === undefined || hostname === "::" || hostname === "0.0.0.0") return "localhost";
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}
