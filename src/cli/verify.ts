import { EXIT } from "../base/exit_codes.ts";
import { Failure } from "../base/failure.ts";
import { counted, formatBytes } from "../base/format_units.ts";
import { ConfigError } from "../config/config_error.ts";
import { boolean } from "../config/kinds/plain.ts";
import { CLIENT_FLAGS, JSON_FLAG } from "./client/client_flags.ts";
import {
  type Completeness,
  completenessWord,
  isCompleteness,
  isPinRoot,
  missingLines,
} from "./client/pinned_closures.ts";
import { followedLines, parsed, unreadable } from "./client/followed_lines.ts";
import { ServerClient } from "./client/server_client.ts";
import { StatusLine } from "./client/status_line.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { noOperands, parseArguments } from "./flags.ts";

const FLAGS = {
  pins: {
    kind: boolean,
    default: false,
    help: "Look at every path of each pinned closure, and read its NAR file",
  },
  json: JSON_FLAG,
  ...CLIENT_FLAGS,
} as const;

export const VERIFY: Command = {
  name: "verify",
  summary: "Find out whether the pinned closures are complete",
  about:
    `The server looks at every path of each pinned closure, reads the NAR files and compares their
hashes. It asks the upstreams for the missing ones, and fetches those of pins that it keeps
complete. The command ends with status 1 if a path is missing or a file was damaged.
`,
  examples: [
    ["larder verify --pins", "Could I rebuild without the internet?"],
    ["larder verify --pins --json | jq '.pins[] | select(.complete | not)'", "List the others"],
  ],
  flags: FLAGS,
  prose: true,
  run: verifyCommand,
};

/** One large NAR file may take so long to fetch. */
const STANDSTILL_MAX_MS = 3_600_000;

interface Pin extends Completeness {
  readonly root: string;
  readonly name: string | null;
}

interface Figures {
  readonly paths: number;
  readonly bytes: number;
}

interface Progress extends Figures {
  readonly pins_done: number;
  readonly pins_all: number;
}

interface Done extends Figures {
  readonly pins: number;
  readonly complete: number;
  readonly damaged: number;
}

type Event =
  | (Progress & { readonly event: "progress" })
  | (Pin & { readonly event: "pin" })
  | (Done & { readonly event: "done" });

async function verifyCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(FLAGS, { ...process, args });
  noOperands(rest);
  if (!flags.pins) {
    throw new ConfigError(
      ["expected --pins, to look at the pinned closures; larder fsck checks all stored files"],
    );
  }
  using client = new ServerClient(flags, process);
  const answer = await client.request("POST", "/pins/verify");
  const { pins, done } = await follow(answer, process);
  process.writeOut(
    flags.json ? `${JSON.stringify({ ...done, pins }, null, 2)}\n` : reportOf(pins, done),
  );
  if (done.complete === done.pins && done.damaged === 0) return EXIT.ok;
  if (done.complete < done.pins) {
    process.writeError(
      "larder: not every pin is complete; larder pin --keep-complete fetches what upstreams have\n",
    );
  }
  return EXIT.failed;
}

/** Shows the progress until the end. Throws if the answer breaks off. */
async function follow(
  answer: Response,
  process: CommandProcess,
): Promise<{ readonly pins: readonly Pin[]; readonly done: Done }> {
  const pins: Pin[] = [];
  let last: Progress | undefined;
  using _status = new StatusLine(process, () => progressLine(last));
  for await (const line of followedLines(answer, { standstillMs: STANDSTILL_MAX_MS })) {
    const read = readEvent(line);
    const { event, ...fields } = read;
    if (read.event === "done") return { pins, done: fields as Done };
    if (event === "pin") pins.push(fields as Pin);
    else last = fields as Progress;
  }
  throw new Failure("corrupt", "Cannot follow the look at the pins: see the server's log");
}

const NUMBERS: Readonly<Record<string, readonly string[]>> = {
  progress: ["pins_done", "pins_all", "paths", "bytes"],
  pin: [],
  done: ["pins", "complete", "damaged", "paths", "bytes"],
};

/** Only larder's own form is valid: the text reaches the terminal. */
function readEvent(line: string): Event {
  const { event, ...fields } = parsed(line);
  const numbers = NUMBERS[String(event)];
  const isRight = numbers?.every((name) => Number.isSafeInteger(fields[name])) &&
    (event !== "pin" || isPinRoot(fields) && isCompleteness(fields));
  if (!isRight) throw unreadable();
  return { event, ...fields } as unknown as Event;
}

function progressLine(last: Progress | undefined): string {
  if (last === undefined) return "looking at the pins";
  const { pins_done, pins_all, paths, bytes } = last;
  return `${pins_done} of ${counted(pins_all, "pin")}: ${counted(paths, "path")}, ` +
    `${formatBytes(bytes)} read`;
}

function reportOf(pins: readonly Pin[], done: Done): string {
  if (done.pins === 0) return "nothing is pinned\n";
  const lines = pins.flatMap((pin) => {
    const short = missingLines(pin);
    return short.length > 0 ? short : [`${pin.name ?? pin.root}: ${wholeWords(pin)}`];
  });
  const { complete, pins: count, bytes, damaged } = done;
  const broken = damaged > 0 ? `; ${counted(damaged, "damaged file")} found` : "";
  const sum = `${complete} of ${counted(count, "pin")} complete, ${formatBytes(bytes)} read`;
  return [...lines, `${sum}${broken}.`].map((line) => `${line}\n`).join("");
}

function wholeWords(pin: Pin): string {
  const paths = counted(pin.look?.paths ?? 0, "path");
  return completenessWord(pin) === "kept" ? `complete and kept so, ${paths}` : `complete, ${paths}`;
}
