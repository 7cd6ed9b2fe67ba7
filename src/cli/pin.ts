import type { Command } from "./command.ts";
import { CLIENT_FLAGS } from "./client/client_flags.ts";
import { eachStorePath, nameOf, reportFailures } from "./client/each.ts";
import { ServerClient, ServerRefusal } from "./client/server_client.ts";
import { filesInVerification, notKept, pinnedClosures } from "./client/pinned_closures.ts";
import { readPathsAndNames } from "./client/package_names.ts";
import { findPinned } from "./client/pinned_names.ts";
import { readStorePathArguments, type StorePathArgument } from "./client/store_path_argument.ts";
import { parseArguments } from "./flags.ts";
import type { CommandProcess } from "./command_process.ts";

export const STORE_PATH_ABOUT =
  `PATH is a store path, a path below one, or a link to one, such as ./result. It may also be
the store path's hash, alone or with .narinfo or -name behind it.
`;

export const PIN: Command = {
  name: "pin",
  summary: "Protect closures from eviction",
  operands: "PATH...",
  about: `larder keeps the closure of each PATH until you unpin it. Pinning fetches nothing. It also
protects paths of the closure that arrive later. \`larder warm --pin\` fetches them first.

${STORE_PATH_ABOUT}`,
  examples: [
    ["larder pin ./result", "Pin the result of nix build, once the cache has it"],
    [
      "larder pin /run/current-system --server http://cache.example.org:8501",
      "Pin the closure of this NixOS on another machine's larder",
    ],
  ],
  flags: CLIENT_FLAGS,
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
`,
  examples: [
    ["larder unpin ./result", "Let larder evict this closure again, except paths of other pins"],
    ["larder unpin firefox", "Unpin the only pinned firefox, of any version"],
    ["larder pins --json | jq -r '.[].root' | xargs larder unpin", "Unpin everything"],
  ],
  flags: CLIENT_FLAGS,
  run: unpinCommand,
};

/** Pins one root. Throws a `ServerRefusal` with a hint. */
export async function pin(client: ServerClient, target: StorePathArgument): Promise<void> {
  try {
    await requestPin(client, "POST", target);
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
  const { flags, rest } = parseArguments(CLIENT_FLAGS, { ...process, args });
  const targets = readStorePathArguments(rest, process);
  using client = new ServerClient(flags, process);
  const failures = await eachStorePath(targets, async (target) => {
    await pin(client, target);
    process.writeOut(`pinned ${nameOf(target)}\n`);
  });
  const hasPinned = failures.length < targets.length;
  if (hasPinned && await filesInVerification(client) > 0) {
    for (const { name, reason } of await notKept(client, targets, 0)) {
      process.writeError(`larder: ${name}: ${reason}; the pin protects them once they are\n`);
    }
  }
  const title = `${failures.length} of ${targets.length} not pinned:`;
  return reportFailures(failures, title, process.writeError);
}

async function unpinCommand(args: readonly string[], process: CommandProcess): Promise<number> {
  const { flags, rest } = parseArguments(CLIENT_FLAGS, { ...process, args });
  const { names, paths } = readPathsAndNames(rest, process);
  using client = new ServerClient(flags, process);
  const pins = names.length === 0 ? [] : await pinnedClosures(client);
  const named = findPinned(names, pins);
  const failed = await eachStorePath([...paths, ...named.found], async (target) => {
    await requestPin(client, "DELETE", target);
    process.writeOut(`unpinned ${nameOf(target)}\n`);
  });
  const failures = [...named.failures, ...failed];
  const title = `${failures.length} of ${paths.length + names.length} not unpinned:`;
  return reportFailures(failures, title, process.writeError);
}

async function requestPin(
  client: ServerClient,
  method: string,
  { storePathHash }: StorePathArgument,
): Promise<void> {
  const answer = await client.request(method, `/pin/${storePathHash}.narinfo`);
  await answer.body?.cancel();
}
