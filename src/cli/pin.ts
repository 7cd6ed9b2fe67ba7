import { EXIT } from "../base/exit_codes.ts";
import { ConfigError } from "../config/config_error.ts";
import type { Kind } from "../config/kinds/option.ts";
import { boolean, integer } from "../config/kinds/plain.ts";
import { isPinName, KEEP_MAX, NAME_FORM, type PinName } from "../pins/pin_name.ts";
import type { Command } from "./command.ts";
import { CLIENT_FLAGS } from "./client/client_flags.ts";
import { eachStorePath, type FailedPath, nameOf, reportFailures } from "./client/each.ts";
import { ServerClient, ServerRefusal } from "./client/server_client.ts";
import {
  filesInVerification,
  notKept,
  type Pinned,
  pinnedClosures,
} from "./client/pinned_closures.ts";
import {
  readPathsAndNames,
  readStorePathArguments,
  type StorePathArgument,
  thoseNamed,
} from "./client/store_path_argument.ts";
import { noOperands, parseArguments } from "./flags.ts";
import type { CommandProcess } from "./command_process.ts";
import { formatBytes } from "../base/format_units.ts";
import { hashOfBaseName, parseBaseName } from "../nix/store_path.ts";

export const STORE_PATH_ABOUT =
  `PATH is a store path, a path below one, or a link to one, such as ./result. It may also be
the store path's hash, alone or with .narinfo or -name behind it.
`;

const optionalBoolean: Kind<boolean> = boolean;

const pinName: Kind<string> = {
  placeholder: "NAME",
  parse(given) {
    if (!isPinName(given)) throw new Error(NAME_FORM);
    return given;
  },
  print: (value) => value,
};

const PIN_FLAGS = {
  name: { kind: pinName, help: "Pin as the newest under this name, such as host/laptop" },
  keep: { kind: integer(1, KEEP_MAX), help: "With --name: as many of its newest paths stay" },
  "keep-complete": {
    kind: optionalBoolean,
    help: "Fetch what is missing of the closure, now and later",
  },
  ...CLIENT_FLAGS,
} as const;

const UNPIN_FLAGS = {
  name: { kind: pinName, help: "Let go of all that is pinned under this name" },
  ...CLIENT_FLAGS,
} as const;

export const PIN: Command = {
  name: "pin",
  summary: "Protect closures from eviction",
  operands: "PATH...",
  about: `larder keeps the closure of each PATH until you unpin it. Pinning fetches nothing. It also
protects paths of the closure that arrive later. \`larder warm --pin\` fetches them first. With
--keep-complete the server fetches what is missing in the background, and again whenever a path is
lost. \`larder pins\` tells whether the closure is complete.

With --name and --keep the pin rolls: the newest paths under the name stay, and older ones go. A
path stays as long as another name holds it, or a pin without a name.

${STORE_PATH_ABOUT}`,
  examples: [
    ["larder pin ./result", "Pin the result of nix build, once the cache has it"],
    [
      "larder pin ./result --keep-complete",
      "Fetch all of its closure, and never miss a path again",
    ],
    [
      "larder pin /run/current-system --server http://cache.example.org:8501",
      "Pin the closure of this NixOS on another machine's larder",
    ],
    [
      "larder pin --name host/laptop --keep 3 /run/current-system",
      "Keep the three newest systems of the laptop",
    ],
  ],
  flags: PIN_FLAGS,
  run: pinCommand,
};

export const UNPIN: Command = {
  name: "unpin",
  summary: "End the protection of closures",
  operands: "PATH|NAME...",
  about:
    `larder deletes nothing at once: the next eviction may. A path that is not pinned is no error.

${STORE_PATH_ABOUT}
NAME is that of a pinned package, with or without its version. If several pins have that name, the
command lists them and changes nothing.

A path that names hold leaves those too. With --name, only that name lets go of its paths.
`,
  examples: [
    ["larder unpin ./result", "Let larder evict this closure again, except paths of other pins"],
    ["larder unpin firefox", "Unpin the only pinned firefox, of any version"],
    ["larder unpin --name host/laptop", "Let go of all that is pinned under this name"],
    ["larder pins --json | jq -r '.[].root' | xargs larder unpin", "Unpin everything"],
  ],
  flags: UNPIN_FLAGS,
  run: unpinCommand,
};

/** How a root is pinned. */
export interface PinOrder {
  /** Default: without a name. */
  readonly under?: PinName | undefined;
  /** Default: as before. */
  readonly keepComplete?: boolean | undefined;
}

/** Pins one root. Throws a `ServerRefusal` with a hint. */
export async function pin(
  client: ServerClient,
  target: StorePathArgument,
  { under, keepComplete }: PinOrder = {},
): Promise<void> {
  const path = under ? rollOf(target, under) : pinOf(target);
  const keeps = keepComplete === undefined ? "" : `keep-complete=${keepComplete}`;
  try {
    await request(client, "POST", keeps && `${path}${under ? "&" : "?"}${keeps}` || path);
  } catch (error) {
    if (!(error instanceof ServerRefusal) || error.status !== 404) throw error;
    const { given } = target;
    throw new ServerRefusal(
      404,
      `the cache has no such path; fetch it first: larder warm ${given}`,
    );
  }
}

async function pinCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(PIN_FLAGS, { ...process, args });
  const targets = readStorePathArguments(rest, process);
  const under = pinNameIn(flags, targets.length);
  using client = new ServerClient(flags, process);
  const keepComplete = flags["keep-complete"];
  const failures = await eachStorePath(targets, async (target) => {
    await pin(client, target, { under, keepComplete });
    const keeps = keepComplete ? ", and the server keeps its closure complete" : "";
    process.writeOut(`pinned ${nameOf(target)}${under ? ` under ${under.name}` : ""}${keeps}\n`);
  });
  const hasPinned = failures.length < targets.length;
  if (hasPinned && !keepComplete && await filesInVerification(client) > 0) {
    for (const { name, reason } of await notKept(client, targets, 0)) {
      process.writeError(`larder: ${name}: ${reason}; the pin protects them once they are\n`);
    }
  }
  const title = `${failures.length} of ${targets.length} not pinned:`;
  return reportFailures(failures, title, process.writeError);
}

async function unpinCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(UNPIN_FLAGS, { ...process, args });
  if (flags.name !== undefined) {
    noOperands(rest);
    using client = new ServerClient(flags, process);
    return await unpinName(client, flags.name, process);
  }
  const { names, paths } = readPathsAndNames(rest, process);
  using client = new ServerClient(flags, process);
  const pins = names.length === 0 ? [] : await pinnedClosures(client);
  const named = findPinned(names, pins);
  const failed = await eachStorePath([...paths, ...named.found], async (target) => {
    await request(client, "DELETE", pinOf(target));
    process.writeOut(`unpinned ${nameOf(target)}\n`);
  });
  const failures = [...named.failures, ...failed];
  const title = `${failures.length} of ${paths.length + names.length} not unpinned:`;
  return reportFailures(failures, title, process.writeError);
}

async function unpinName(
  client: ServerClient,
  name: string,
  { writeOut, writeError }: CommandProcess,
): Promise<number> {
  try {
    await request(client, "DELETE", `/pins/names?${new URLSearchParams({ name })}`);
  } catch (error) {
    if (!(error instanceof ServerRefusal) || error.status !== 404) throw error;
    writeError(`larder: nothing is pinned under ${name}; larder pins lists the names\n`);
    return EXIT.failed;
  }
  writeOut(`unpinned ${name}\n`);
  return EXIT.ok;
}

/** `undefined` without a name. Throws a `ConfigError` if a part of it is missing. */
function pinNameIn(
  { name, keep }: { readonly [Part in keyof PinName]: PinName[Part] | undefined },
  count: number,
): PinName | undefined {
  if (name === undefined && keep === undefined) return undefined;
  if (keep === undefined) {
    throw new ConfigError([
      `--name: expected --keep with it, from 1 to ${KEEP_MAX}, such as --keep 3`,
    ]);
  }
  if (name === undefined) {
    throw new ConfigError(["--keep: expected --name with it, such as --name host/laptop"]);
  }
  if (count > keep) {
    throw new ConfigError([
      `--keep ${keep}: got ${count} paths, and the first would go at once; expected no more of them`,
    ]);
  }
  return { name, keep };
}

function pinOf({ storePathHash }: StorePathArgument): string {
  return `/pin/${storePathHash}.narinfo`;
}

function rollOf({ storePathHash: root }: StorePathArgument, { name, keep }: PinName): string {
  return `/pins/names?${new URLSearchParams({ name, keep: String(keep), root })}`;
}

async function request(client: ServerClient, method: string, path: string): Promise<void> {
  const answer = await client.request(method, path);
  await answer.body?.cancel();
}

/** Pins that package names stand for. */
interface PinnedNames {
  readonly found: readonly StorePathArgument[];
  /** The names that no pin has, or several have. */
  readonly failures: readonly FailedPath[];
}

/** Finds the one pin of each name. A name without a version stands for any version. */
function findPinned(names: readonly string[], pins: readonly Pinned[]): PinnedNames {
  const found: StorePathArgument[] = [];
  const failures: FailedPath[] = [];
  for (const given of names) {
    const matching = thoseNamed(given, pins);
    const [only] = matching;
    if (matching.length === 1 && only !== undefined) found.push(argumentOf(given, only));
    else failures.push({ name: given, reason: reasonOf(matching) });
  }
  return { found, failures };
}

function argumentOf(given: string, { root, name }: Pinned): StorePathArgument {
  const baseName = parseBaseName(`${root}-${name}`);
  return { given, baseName, storePathHash: hashOfBaseName(baseName) };
}

function reasonOf(matching: readonly Pinned[]): string {
  if (matching.length === 0) return "no pin has this name; larder pins lists them all";
  const lines = matching.map(({ root, name, bytes, pinned_at }) =>
    `\n    ${root}-${name}  ${formatBytes(bytes)}, pinned ${pinned_at.slice(0, 10)}`
  );
  return `${matching.length} pins have this name; give one of${lines.join("")}`;
}
