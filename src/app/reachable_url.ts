import { answerInTime, readNamedFile } from "../base/named_file.ts";
import { clock } from "../runtime/current.ts";
import { HOST_PLACEHOLDER } from "../nix/client_ways.ts";
import { searchDomainsIn } from "./own_names.ts";

/** What a machine knows of its network. */
export interface LocalNetwork {
  hostname(): string;
  /** Its addresses in the network, the best known to others first; none where that is unknown. */
  addresses(): readonly string[];
  /** The text of a small file; `undefined` where there is none to read. */
  text(path: string): Promise<string | undefined>;
  /** The addresses that the network's name server gives for a name. Never rejects. */
  resolve(name: string, server: string | undefined): Promise<readonly string[]>;
}

/** resolv.conf(5): the name server and the search domains. */
const RESOLV_CONF = "/etc/resolv.conf";

/** The same of the network's own servers, where systemd-resolved stands in front of them. */
const RESOLVED_CONF = "/run/systemd/resolve/resolv.conf";

/** systemd-resolved. It knows the machine's name itself, so its answer says nothing of others. */
const RESOLVED_ADDRESS = "127.0.0.53";

/** The banner does not wait longer for name servers. */
const RESOLVE_MAX_MS = 1_000;

/** A machine may change its network, such as a laptop. */
const KNOWN_FOR_MS = 60_000;

/** Interfaces of containers and virtual machines, which no other machine reaches. */
const INNER_INTERFACE_REGEXP = /^(lo|docker|br-|veth|virbr|vmnet|cni|flannel|podman|lxc|lxd)/;

/** Docker and Podman put these into each container. */
const CONTAINER_FILES = ["/.dockerenv", "/run/.containerenv"];

/** A search domain that the network of Kubernetes gives to each pod. */
const POD_DOMAIN_REGEXP = /\.svc\./;

const LOOPBACK_REGEXP = /^(localhost|127\.[\d.]+|\[?::1\]?)$/;

/** The firewalls that a file tells of, and how each lets clients in. */
const FIREWALLS: readonly {
  readonly path: string;
  readonly isUp: (text: string) => boolean;
  readonly line: (port: string) => string;
}[] = [
  {
    path: "/etc/ufw/ufw.conf",
    isUp: (text) => /^ENABLED=["']?yes/mi.test(text),
    line: (port) => `sudo ufw allow ${port}/tcp`,
  },
  {
    path: "/run/firewalld.pid",
    isUp: () => true,
    line: (port) =>
      `sudo firewall-cmd --permanent --add-port=${port}/tcp && sudo firewall-cmd --reload`,
  },
  {
    // NixOS has a firewall unless it was turned off.
    path: "/etc/systemd/system/firewall.service",
    isUp: () => true,
    line: (port) => `networking.firewall.allowedTCPPorts = [ ${port} ];`,
  },
];

/** Files beyond the settings that these functions read. */
export const NETWORK_FILES: readonly string[] = [
  RESOLV_CONF,
  RESOLVED_CONF,
  ...CONTAINER_FILES,
  ...FIREWALLS.map(({ path }) => path),
];

/** True if only the machine itself reaches that URL. */
export function isLoopback(url: string): boolean {
  return LOOPBACK_REGEXP.test(new URL(url).hostname);
}

/** Finds the address of this larder that its clients on other machines reach. */
export interface AddressFinder {
  /** `--cache-hostname` where it is set: the address of a larder in a container. */
  readonly hostname?: string | undefined;
  readonly network?: LocalNetwork;
}

/**
 * The URL by which other machines reach what this one calls `url`. A name or an address in it is
 * kept, unless only this machine reaches it. Then it is the host name where the network's name
 * server knows that, else the address. A container knows neither, and its own host name leads
 * nowhere outside: it is `--cache-hostname`, else a placeholder.
 */
export function reachableUrl(url: string, finder: AddressFinder = {}): Promise<string> {
  return urlWith(url, () => reachableHost(finder));
}

/** The same for a page that asks again and again: it looks at the network once a minute. */
export function reachableUrls(finder: AddressFinder): (url: string) => Promise<string> {
  let known: Promise<string> | undefined;
  let askedAtMs = -Infinity;
  return (url) =>
    urlWith(url, () => {
      const nowMs = clock.nowMs();
      if (nowMs - askedAtMs < KNOWN_FOR_MS && known !== undefined) return known;
      askedAtMs = nowMs;
      return known = reachableHost(finder);
    });
}

async function urlWith(url: string, host: () => Promise<string>): Promise<string> {
  if (!isLoopback(url)) return url.replace(/\/+$/, "");
  const { protocol, port, pathname } = new URL(url);
  return `${protocol}//${await host()}${port && `:${port}`}${pathname.replace(/\/+$/, "")}`;
}

async function reachableHost(
  { hostname, network = LOCAL_NETWORK }: AddressFinder,
): Promise<string> {
  if (await isInContainer(network)) return hostname ?? HOST_PLACEHOLDER;
  const name = await clock.within(nameOf(network), RESOLVE_MAX_MS);
  return name ?? addressOf(network) ?? network.hostname();
}

/** True in a pod too. The address is one of an inner network. */
async function isInContainer(network: LocalNetwork): Promise<boolean> {
  const domains = searchDomainsIn(await network.text(RESOLV_CONF) ?? "");
  if (domains.some((domain) => POD_DOMAIN_REGEXP.test(domain))) return true;
  const texts = await Promise.all(CONTAINER_FILES.map((path) => network.text(path)));
  return texts.some((text) => text !== undefined);
}

/** How to let other machines in at that URL's port; `undefined` where no known firewall is up. */
export async function firewallLine(
  url: string,
  network: LocalNetwork = LOCAL_NETWORK,
): Promise<string | undefined> {
  const { port, protocol } = new URL(url);
  for (const { path, isUp, line } of FIREWALLS) {
    const text = await network.text(path);
    if (text !== undefined && isUp(text)) {
      return line(port !== "" ? port : protocol === "https:" ? "443" : "80");
    }
  }
  return undefined;
}

/** The machine's name, if the network's name server leads to one of its addresses. */
async function nameOf(network: LocalNetwork): Promise<string | undefined> {
  const given = await network.text(RESOLV_CONF) ?? "";
  const isResolved = serverIn(given) === RESOLVED_ADDRESS;
  const conf = (isResolved ? await network.text(RESOLVED_CONF) : undefined) ?? given;
  const server = serverIn(conf);
  const own = new Set(network.addresses());
  const name = network.hostname();
  const short = name.replace(/\..*$/, "");
  const names = [name, ...searchDomainsIn(conf).map((domain) => `${short}.${domain}`)];
  const found = await Promise.all(names.map(async (one) => {
    const addresses = await network.resolve(one, server);
    return addresses.some((address) => own.has(address));
  }));
  return names.find((_, index) => found[index]);
}

function addressOf(network: LocalNetwork): string | undefined {
  const [address] = network.addresses();
  return address?.includes(":") ? `[${address}]` : address;
}

function serverIn(resolvConf: string): string | undefined {
  return /^nameserver[ \t]+(\S+)/m.exec(resolvConf)?.[1];
}

/** The network of this machine. */
const LOCAL_NETWORK: LocalNetwork = {
  hostname: () => Deno.hostname(),
  addresses: localAddresses,
  async text(path) {
    try {
      return await answerInTime(readNamedFile(path));
    } catch {
      return undefined;
    }
  },
  async resolve(name, server) {
    const options = server === undefined ? {} : { nameServer: { ipAddr: server, port: 53 } };
    const queries = (["A", "AAAA"] as const).map((type) => Deno.resolveDns(name, type, options));
    const answers = await Promise.allSettled(queries);
    return answers.flatMap((one) => one.status === "fulfilled" ? one.value : []);
  },
};

/** None without `--allow-sys=networkInterfaces`, and where a service manager forbids it. */
function localAddresses(): readonly string[] {
  try {
    const all = Deno.networkInterfaces().filter(({ name, address, scopeid }) =>
      !INNER_INTERFACE_REGEXP.test(name) && !LOOPBACK_REGEXP.test(address) &&
      !address.startsWith("169.254.") && (scopeid ?? 0) === 0
    );
    // People read and type IPv4 more easily.
    return all.toSorted((a, b) => a.family.localeCompare(b.family)).map(({ address }) => address);
  } catch {
    return [];
  }
}
