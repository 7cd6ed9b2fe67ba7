import { lowerAscii, parseHost } from "../message/message.ts";

/**
 * Domains that only the machines of one household or network name. No stranger can register a name
 * below them: RFC 8375 (`home.arpa`), RFC 6762 (`local`), ICANN's reserved `internal`, and what
 * common routers give out.
 */
const HOME_DOMAINS = [
  ...["lan", "local", "home", "home.arpa", "internal", "localdomain", "fritz.box"],
];

/** Tailscale's names have the network between machine and domain: `nas.tail1234.ts.net`. */
const TAILNET_REGEXP = /^[a-z0-9-]+\.ts\.net$/;

/** The machine of a larder, as others in its network name it. */
export interface Machine {
  /** Its names, with or without a domain. */
  readonly names: readonly string[];
  /** The domains in which its resolver looks for short names, `search` in resolv.conf(5). */
  readonly searchDomains: readonly string[];
}

/** The host names of this cache for browsers. Any IP address and `localhost` are included. */
export class OwnNames {
  readonly #names: ReadonlySet<string>;
  readonly #machine: readonly string[];

  constructor(names: readonly string[], machine?: Machine) {
    const given = machine === undefined ? names : [...names, ...namesOf(machine)];
    this.#names = new Set(["localhost", ...given].map(normal));
    this.#machine = (machine?.names ?? []).map(shortName);
  }

  /**
   * True when a `Host` field names this cache. An attacker can point a name of theirs at this
   * server (DNS rebinding), but no IP address and no other name.
   */
  has(host: string | null): boolean {
    const parsed = host === null ? undefined : parseHost(host);
    if (parsed === undefined) return false;
    return parsed.isAddress || this.#hasName(normal(parsed.name));
  }

  #hasName(name: string): boolean {
    if (this.#names.has(name)) return true;
    return this.#machine.some((short) =>
      name.startsWith(`${short}.`) && TAILNET_REGEXP.test(name.slice(short.length + 1))
    );
  }
}

function namesOf({ names, searchDomains }: Machine): readonly string[] {
  const domains = [...HOME_DOMAINS, ...searchDomains];
  return names.flatMap((name) => {
    const short = shortName(name);
    return [name, short, ...domains.map((domain) => `${short}.${domain}`)];
  });
}

/** The name without its domain. */
function shortName(name: string): string {
  return normal(name).replace(/\..*$/, "");
}

/** In lower case, and without the dot of the fully qualified form `cache.example.`. */
function normal(name: string): string {
  return lowerAscii(name).replace(/\.$/, "");
}
