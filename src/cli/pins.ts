import { Failure } from "../base/failure.ts";
import { CLIENT_FLAGS, JSON_FLAG } from "./client/client_flags.ts";
import { formatBytes } from "./client/format.ts";
import { ServerClient } from "./client/server_client.ts";
import type { Command } from "./command.ts";
import { EXIT } from "./exit_codes.ts";
import { noOperands, readWords } from "./flags.ts";
import type { Host } from "./host.ts";

const FLAGS = { json: JSON_FLAG, ...CLIENT_FLAGS } as const;

export const PINS: Command = {
  name: "pins",
  summary: "List what is pinned, and how much of it is here",
  about:
    `STORED counts the paths of the closure that are here whole, MISSING those that are known by
reference only or whose NAR file is not here; SIZE is that of the NAR files. A pin protects also
what arrives later. \`larder warm\` fetches what is missing.
`,
  examples: [
    ["larder pins", "A table, in the order of pinning"],
    ["larder pins --json | jq '.[] | select(.missing > 0)'", "Those that would not do offline"],
  ],
  flags: FLAGS,
  run: pinsCommand,
};

/** A second more than the server itself allows for it. */
const COUNT_LIMIT_MS = 61_000;

/** What the server says of a pin; see its route `/pins/closures`. */
interface Pinned {
  readonly root: string;
  readonly name: string | null;
  readonly stored: number;
  readonly missing: number;
  readonly bytes: number;
  readonly pinnedAt: string;
}

async function pinsCommand(args: readonly string[], host: Host): Promise<number> {
  const { flags, rest } = readWords(FLAGS, { ...host, args });
  noOperands(rest);
  using client = new ServerClient(flags);
  const pins = readPins(
    await (await client.request("GET", "/pins/closures", COUNT_LIMIT_MS)).text(),
  );
  if (flags.json) host.writeOut(`${JSON.stringify(pins, null, 2)}\n`);
  else if (pins.length === 0) host.writeError("nothing is pinned\n");
  else host.writeOut(tableOf(pins));
  return EXIT.ok;
}

function tableOf(pins: readonly Pinned[]): string {
  const head = ["ROOT", "NAME", "STORED", "MISSING", "SIZE", "PINNED SINCE"];
  const rows = pins.map(({ root, name, stored, missing, bytes, pinnedAt }) => [
    root,
    name ?? "(not stored)",
    String(stored),
    String(missing),
    formatBytes(bytes),
    `${pinnedAt.slice(0, 10)} ${pinnedAt.slice(11, 16)} UTC`,
  ]);
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const isNumber = (column: number) => column >= 2 && column <= 4;
  return all.map((row) =>
    row.map((cell, column) => {
      const width = widths[column] ?? 0;
      return isNumber(column) ? cell.padStart(width) : cell.padEnd(width);
    }).join("  ").trimEnd() + "\n"
  ).join("");
}

function readPins(text: string): readonly Pinned[] {
  try {
    const pins: unknown = JSON.parse(text);
    if (Array.isArray(pins) && pins.every(isPinned)) return pins;
  } catch {
    // Said below, as for any other answer that is not larder's.
  }
  throw new Failure("corrupt", "Cannot read the server's list of pins: is it larder?");
}

// A terminal shows them: nothing but what larder writes itself.
const ROOT_REGEXP = /^[0-9a-z]{32}$/;
const NAME_REGEXP = /^[0-9A-Za-z+\-._?=]{1,211}$/;
const TIME_REGEXP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

function isPinned(value: unknown): value is Pinned {
  const { root, name, stored, missing, bytes, pinnedAt } = (value ?? {}) as Partial<Pinned>;
  return ROOT_REGEXP.test(String(root)) && (name === null || NAME_REGEXP.test(String(name))) &&
    [stored, missing, bytes].every((count) => Number.isSafeInteger(count)) &&
    TIME_REGEXP.test(String(pinnedAt));
}
