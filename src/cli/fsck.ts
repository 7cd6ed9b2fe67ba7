import { boolean } from "../config/kinds/plain.ts";
import type { FsckProblem, FsckProgress } from "../cache/reconcile/fsck.ts";
import { JSON_FLAG } from "./client/client_flags.ts";
import { counted, formatBytes } from "../base/format_units.ts";
import { StatusLine } from "./client/status_line.ts";
import type { Command } from "./command.ts";
import { EXIT } from "../base/exit_codes.ts";
import { parseArguments } from "./flags.ts";
import type { CommandProcess } from "./command_process.ts";
import { serverSettings } from "./server_arguments.ts";

const FLAGS = {
  "verify-content": {
    kind: boolean,
    default: false,
    help: "Read and decompress every NAR file, and check its hashes",
  },
  repair: { kind: boolean, default: false, help: "Repair the problems" },
  adopt: {
    kind: boolean,
    default: false,
    help: "Take over NAR files of another database: a server removes those without a row",
  },
  json: JSON_FLAG,
} as const;

export const FSCK: Command = {
  name: "fsck",
  summary: "Check the stored files against the database",
  about: `It works on the storage itself, also while a server runs on it. It ends with status 1 if
something was wrong, mended or not. It removes a damaged file: larder fetches it for the next
client.
`,
  examples: [
    ["larder fsck --cache-storage-local /var/lib/larder", "Check names, sizes and sums"],
    ["larder fsck --verify-content --repair", "Read every file, and remove damaged ones"],
  ],
  ownFlags: FLAGS,
  flags: "server",
  prose: true,
  run: fsckCommand,
};

async function fsckCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const isOwn = (word: string) =>
    Object.keys(FLAGS).some((name) => new RegExp(`^--(no-)?${name}(=|$)`).test(word));
  const { flags } = parseArguments(FLAGS, { ...process, args: args.filter(isOwn) });
  const { settings } = await serverSettings(args.filter((word) => !isOwn(word)), process);
  // Loaded here, so that help and errors are fast.
  const { fsckStorage } = await import("../app/fsck.ts");
  let last: FsckProgress | undefined;
  const problems: FsckProblem[] = [];
  const order = {
    verifyContent: flags["verify-content"],
    repair: flags.repair,
    adopt: flags.adopt,
  };
  let result: FsckProgress;
  {
    using _status = new StatusLine(process, () => progressLine(last));
    result = await fsckStorage(settings, order, {
      progress: (progress) => last = progress,
      problem: (problem) => void problems.push(problem),
    });
  }
  process.writeOut(flags.json ? jsonOf(result, problems) : reportOf(result, problems));
  return problems.length === 0 ? EXIT.ok : EXIT.failed;
}

function progressLine(last: FsckProgress | undefined): string {
  if (last === undefined) return "checking the database";
  const { filesAll, files, bytes } = last;
  // A running server may add some meanwhile.
  const percent = Math.floor(100 * Math.min(1, files / Math.max(1, filesAll)));
  return `${percent} % checked: ${counted(files, "NAR file")}, ${formatBytes(bytes)}`;
}

function jsonOf({ files, bytes }: FsckProgress, problems: readonly FsckProblem[]): string {
  return `${JSON.stringify({ files, bytes, problems })}\n`;
}

/** The last line of a report on a damaged database. */
const DAMAGED = "No NAR file was compared with the damaged database: stop larder, and restore a " +
  "backup, or begin a new storage folder with the old secret-key.\n";

/** The findings for people. */
function reportOf({ files, bytes }: FsckProgress, problems: readonly FsckProblem[]): string {
  const lines = problems.map(({ nar, detail, mended }) =>
    `${nar ?? "database"}: ${detail}${mended ? ", mended" : ""}`
  );
  if (problems.some(({ kind }) => kind === "database")) return [...lines, DAMAGED].join("\n");
  const mended = problems.filter((problem) => problem.mended).length;
  const found = problems.length === 0
    ? "nothing is wrong"
    : `${counted(problems.length, "problem")}, ${mended} mended`;
  const done = `${counted(files, "NAR file")} (${formatBytes(bytes)}) as they should be`;
  if (mended < problems.length) lines.push("Run it with --repair to repair the ones that it can.");
  return [...lines, `${done}; ${found}.`].map((line) => `${line}\n`).join("");
}
