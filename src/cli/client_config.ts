import { firewallLine, isLoopback, reachableUrl } from "../app/reachable_url.ts";
import { EXIT } from "../base/exit_codes.ts";
import { Failure } from "../base/failure.ts";
import type { Kind } from "../config/kinds/option.ts";
import { givenHostname, readSettings } from "../config/settings.ts";
import { clientWays, HOST_PLACEHOLDER, HOST_PLACEHOLDER_HINT } from "../nix/client_ways.ts";
import { CLIENT_FLAGS } from "./client/client_flags.ts";
import { answerText } from "./client/server_answer.ts";
import { ServerClient, ServerRefusal } from "./client/server_client.ts";
import type { Command } from "./command.ts";
import type { CommandProcess } from "./command_process.ts";
import { noOperands, parseArguments } from "./flags.ts";

/** The forms of the page's tabs. */
const FORMS = clientWays({ url: "", publicKeys: [] }).map(({ id }) => id);

const form: Kind<string> = {
  placeholder: "FORM",
  values: FORMS,
  parse(given) {
    if (!FORMS.includes(given)) throw new Error(`one of ${FORMS.join(", ")}`);
    return given;
  },
  print: (value) => value,
};

const FLAGS = {
  form: {
    kind: form,
    default: "conf",
    help: "conf (nix.conf), nixos, darwin, flake, ci, or once (one command)",
  },
  ...CLIENT_FLAGS,
} as const;

const ANSWER_LIMITS = { limitMs: 4_000, bytesMax: 1_024 };

/** `larder client-config`: what a client needs to use a running larder. */
export const CLIENT_CONFIG: Command = {
  name: "client-config",
  summary: "Print the lines that let another machine use this larder",
  about: `The lines name this machine as others reach it: by its host name, or by its address where
the network does not know that name. In a container it is the --cache-hostname of the settings. An
address given with --server is used as it is.
`,
  examples: [
    ["larder client-config", "Print the lines for a client's nix.conf"],
    ["larder client-config --form nixos", "Print them for a client's configuration.nix"],
    ["larder client-config --server https://cache.example.org", "Print them for that address"],
  ],
  flags: FLAGS,
  run: clientConfigCommand,
};

async function clientConfigCommand(
  args: readonly string[],
  process: CommandProcess,
): Promise<number> {
  const { flags, rest } = parseArguments(FLAGS, { ...process, args });
  noOperands(rest);
  const { server } = flags;
  if (server.kind === "unix") {
    throw new Failure(
      "bad-request",
      "Cannot print lines for a Unix socket: give a URL of --server",
    );
  }
  using client = new ServerClient(flags, process);
  const publicKeys = await publicKeysOf(client);
  const isOwn = isLoopback(server.url);
  const { network } = process;
  const hostname = isOwn ? await configuredHostname(process) : undefined;
  const url = await reachableUrl(server.url, { hostname, ...network && { network } });
  const way = clientWays({ url, publicKeys }).find(({ id }) => id === flags.form);
  process.writeOut(way?.lines ?? "");
  if (!isOwn) return EXIT.ok;
  if (url.includes(HOST_PLACEHOLDER)) {
    process.writeError(`larder: a container does not know its address: ${HOST_PLACEHOLDER_HINT}\n`);
  } else if (!await answers(url, process)) {
    process.writeError(
      `larder: nothing answers at ${url}: does larder listen on this machine alone ` +
        "(--server-addr)?\n",
    );
  }
  const firewall = await firewallLine(url, network);
  if (firewall !== undefined) {
    process.writeError(`larder: a firewall is up. To let other machines in: ${firewall}\n`);
  }
  return EXIT.ok;
}

/** The name that the settings give; `undefined`: none, or the settings cannot be read. */
async function configuredHostname(process: CommandProcess): Promise<string | undefined> {
  try {
    return givenHostname(await readSettings({ ...process, ...process.namedFiles, args: [] }));
  } catch {
    return undefined;
  }
}

/** None where larder does not sign. */
async function publicKeysOf(client: ServerClient): Promise<readonly string[]> {
  try {
    return [(await answerText(client, "/pubkey", ANSWER_LIMITS)).trim()];
  } catch (error) {
    if (error instanceof ServerRefusal && error.status === 404) return [];
    throw error;
  }
}

async function answers(url: string, process: CommandProcess): Promise<boolean> {
  using client = new ServerClient({ server: { kind: "http", url }, token: undefined }, process);
  try {
    await answerText(client, "/nix-cache-info", ANSWER_LIMITS);
    return true;
  } catch {
    return false;
  }
}
