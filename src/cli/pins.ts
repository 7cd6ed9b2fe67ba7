import { choice } from "../config/kinds/plain.ts";
import { CLIENT_FLAGS, JSON_FLAG } from "./client/client_flags.ts";
import {
  completenessWord,
  filesInVerification,
  inVerification,
  missingLines,
  type Pinned,
  pinnedBytes,
  pinnedClosures,
} from "./client/pinned_closures.ts";
import { formatBytes } from "../base/format_units.ts";
import { ServerClient } from "./client/server_client.ts";
import type { Command } from "./command.ts";
import { EXIT } from "../base/exit_codes.ts";
import { noOperands, parseArguments } from "./flags.ts";
import type { CommandProcess } from "./command_process.ts";

const ORDERS = {
  age: () => 0,
  name: (a, b) => (a.name ?? a.root).localeCompare(b.name ?? b.root),
  size: (a, b) => b.bytes - a.bytes,
  own: (a, b) => (b.own_bytes ?? 0) - (a.own_bytes ?? 0),
  stored: (a, b) => b.stored - a.stored,
  missing: (a, b) => b.missing - a.missing,
} as const satisfies Readonly<Record<string, (a: Pinned, b: Pinned) => number>>;

const FLAGS = {
  sort: {
    kind: choice("age", "name", "size", "own", "stored", "missing"),
    default: "age",
    help: "Order: the oldest pin, the first name, the largest size or number first",
  },
  json: JSON_FLAG,
  ...CLIENT_FLAGS,
} as const;

export const PINS: Command = {
  name: "pins",
  summary: "List the pins, and how much of each is stored",
  about:
    `STORED counts the paths of the closure whose NAR file is stored. COMPLETE is "yes" if the last
look found all of them here, "kept" if larder keeps it so, else how many are missing. larder looks
every night, and \`larder verify --pins\` now. Within a minute of a pin both are "counting", until
the first count. SIZE is the size of the NAR files that are here, without those of missing paths.
OWN is the part that no other pin reaches: it goes if you unpin. \`larder pin --keep-complete\`
fetches the missing paths, and keeps them.
UNDER has the names that hold the pin, and goes with the last of
them: see \`larder pin --name\`.
`,
  examples: [
    ["larder pins", "List the pins in the order of pinning"],
    ["larder pins --sort size", "List the largest closures first"],
    [
      "larder pins --json | jq '.[] | select(.missing > 0)'",
      "List the pins of which paths are missing",
    ],
  ],
  flags: FLAGS,
  prose: true,
  run: pinsCommand,
};

async function pinsCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(FLAGS, { ...process, args });
  noOperands(rest);
  using client = new ServerClient(flags, process);
  const pins = (await pinnedClosures(client)).toSorted(ORDERS[flags.sort]);
  if (flags.json) process.writeOut(`${JSON.stringify(pins, null, 2)}\n`);
  else if (pins.length === 0) process.writeError("nothing is pinned\n");
  else {
    process.writeOut(tableOf(pins, process.screenSize().columns));
    for (const line of pins.flatMap(missingLines)) process.writeOut(`${line}\n`);
    const together = pins.length > 1 ? await pinnedBytes(client) : undefined;
    if (together !== undefined) {
      process.writeOut(`all ${pins.length} pins: ${formatBytes(together)} together\n`);
    }
  }
  const files = pins.some(({ missing }) => missing > 0) ? await filesInVerification(client) : 0;
  if (files > 0) {
    process.writeError(`larder: ${inVerification(files)}: their paths are missing until then\n`);
  }
  return EXIT.ok;
}

/** A shorter name says nothing. */
const NAME_COLUMNS_MIN = 10;

/** A name may have 211 characters: those in the way of a terminal's width are cut. */
function tableOf(pins: readonly Pinned[], columns = Infinity): string {
  // Without names as before: the column is the last, as several long ones exceed any terminal.
  const hasNames = pins.some(({ under }) => under !== undefined);
  const head = [
    ...["ROOT", "NAME", "STORED", "COMPLETE", "OWN", "SIZE", "PINNED"],
    ...hasNames ? ["UNDER"] : [],
  ];
  const rows = pins.map(({ root, name, stored, bytes, own_bytes, pinned_at, ...pin }) => [
    root,
    name ?? "(not stored)",
    String(stored),
    completenessWord(pin),
    own_bytes === undefined ? "counting" : formatBytes(own_bytes),
    formatBytes(bytes),
    pinned_at.slice(0, 10),
    ...hasNames ? [holdersOf(pin)] : [],
  ]);
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const tooMany = widths.reduce((sum, width) => sum + width + 2, -2) - columns;
  if (tooMany > (widths[1] ?? 0) - NAME_COLUMNS_MIN) return listOf(head, rows);
  const nameWidth = Math.max(NAME_COLUMNS_MIN, (widths[1] ?? 0) - Math.max(0, tooMany));
  if (tooMany > 0) widths[1] = Math.min(widths[1] ?? 0, nameWidth);
  const isNumber = (column: number) => column >= 2 && column <= 5 && column !== 3;
  return all.map((row) =>
    row.map((cell, column) => {
      const width = widths[column] ?? 0;
      if (cell.length > width) return `${cell.slice(0, width - 1)}…`;
      return isNumber(column) ? cell.padStart(width) : cell.padEnd(width);
    }).join("  ").trimEnd() + "\n"
  ).join("");
}

/** The rows for a terminal that is too narrow for the table. */
function listOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.map(([root = "", name = "", ...cells]) => {
    const words = cells.flatMap((cell, at) =>
      cell === "" ? [] : [`${head[at + 2]?.toLowerCase()} ${cell}`]
    );
    return `${root}\n  ${name}\n  ${words.join(", ")}\n`;
  }).join("");
}

/** A root with names goes with the last of them, unless somebody has pinned it without a name. */
function holdersOf({ under = [], rolls }: Pick<Pinned, "under" | "rolls">): string {
  return [...under, ...under.length > 0 && !rolls ? ["by hand"] : []].join(", ");
}
