import { answerInTime, readNamedFile } from "../base/named_file.ts";
import type { Settings } from "../config/options.ts";
import { OwnNames } from "../http/access/own_names.ts";

/** The resolver's settings, resolv.conf(5). */
const RESOLV_CONF = "/etc/resolv.conf";

/**
 * The names of this cache for browsers: the machine's, also below the domains of its network, and
 * those of the settings.
 */
export async function ownNamesOf(settings: Settings): Promise<OwnNames> {
  const address = settings["server.addr"];
  const listed = [settings["cache.hostname"], ...settings["server.allowed-hosts"]];
  const isNamed = address.kind === "tcp" && address.hostname !== undefined;
  const names = [...listed, ...isNamed ? [address.hostname] : []];
  const own = [Deno.hostname(), settings["cache.hostname"]].filter(
    // A given name with a domain stands for itself alone.
    (name, index) => index === 0 || !name.includes("."),
  );
  return new OwnNames(names, { names: own, searchDomains: await searchDomains() });
}

/** None where the file cannot be read: not every machine has it. */
async function searchDomains(): Promise<readonly string[]> {
  try {
    return searchDomainsIn(await answerInTime(readNamedFile(RESOLV_CONF)));
  } catch {
    return [];
  }
}

/** The domains of the last `search` or `domain` line, which overrides those before it. */
export function searchDomainsIn(resolvConf: string): readonly string[] {
  const lines = [...resolvConf.matchAll(/^(?:search|domain)[ \t]+(.*)$/gm)];
  const words = (lines.at(-1)?.[1] ?? "").replace(/[#;].*$/, "").split(/\s+/);
  return words.filter((word) => /^[a-z0-9-]/i.test(word));
}
