import { firewallLine, isLoopback, reachableUrl } from "../app/reachable_url.ts";
import { EXIT } from "../base/exit_codes.ts";
import { Failure } from "../base/failure.ts";
import type { Kind } from "../config/kinds/option.ts";
import { givenHostname, readSettings } from "../config/settings.ts";
import { clientWays, HOST_PLACEHOLDER, HOST_PLACEHOLDER_HINT } from "../nix/client_ways.ts";
import { CLIENT_FLAGS } from "./client/client_flags.ts";
import { answerJson, answerText } from "./client/server_answer.ts";
import { ServerClient } from "./client/server_client.ts";
import { ServerJson } from "./client/server_json.ts";
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

/** A larder without a key of its own has those of all its upstreams. */
const TOLD_LIMITS = { limitMs: 4_000, bytesMax: 65_536 };

/** Any program may listen at the address: nothing else of its answer gets into the lines. */
const URL_REGEXP = /^https?:\/\/[\w.:[\]-]+$/;
const KEY_REGEXP = /^[^\s:"'\\$;]+:[A-Za-z0-9+/=]+$/;

/** `larder client-config`: what a client needs to use a running larder. */
export const CLIENT_CONFIG: Command = {
  name: "client-config",
  summary: "Print the lines that let another machine use this larder",
  about: `The lines name this machine as others reach it: by its host name, or by its address where
the network does not know that name. The running larder tells it, as its page does. In a container
it is the --cache-hostname of that larder. Another machine's address given with --server is used as
it is.
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
  const told = await toldBy(client);
  const { publicKeys } = told;
  const isOwn = isLoopback(server.url);
  const { network } = process;
  const url = isOwn ? told.url ?? await foundUrl(server.url, process) : server.url;
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

/** The address and the keys that the server tells; no address that it alone reaches. */
async function toldBy(
  client: ServerClient,
): Promise<{ readonly url: string | undefined; readonly publicKeys: readonly string[] }> {
  const json = new ServerJson(await answerJson(client, "/client-config", TOLD_LIMITS));
  const url = json.at("url").text ?? "";
  const isUsable = URL_REGEXP.test(url) && URL.canParse(url) && !isLoopback(url);
  const keys = json.at("public_keys").list.flatMap(({ text }) => text ?? []);
  return {
    url: isUsable ? url : undefined,
    publicKeys: keys.filter((key) => KEY_REGEXP.test(key)),
  };
}

/** The address that this command finds by itself. */
async function foundUrl(url: string, process: CommandProcess): Promise<string> {
  const hostname = await configuredHostname(process);
  return await reachableUrl(url, { hostname, ...process.network && { network: process.network } });
}

/** The name that the settings give; `undefined`: none, or the settings cannot be read. */
async function configuredHostname(process: CommandProcess): Promise<string | undefined> {
  try {
    return givenHostname(await readSettings({ ...process, ...process.namedFiles, args: [] }));
  } catch {
    return undefined;
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
