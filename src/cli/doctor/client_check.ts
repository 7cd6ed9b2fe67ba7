import { listIn } from "../../nix/nix_conf.ts";
import { type Finding, findingsOn } from "./finding.ts";
import type { NixClient } from "./nix_client.ts";

export interface ClientFacts {
  /** `undefined`: there is no Nix on this machine. */
  readonly nix: NixClient | undefined;
  /** The URL of larder for the advice; `undefined`: unknown. */
  readonly url: string | undefined;
  /** larder's public key; `undefined`: unknown, or it does not sign. */
  readonly publicKey: string | undefined;
  /** The keys of the upstreams, whose signatures larder passes through. */
  readonly upstreamKeys: readonly string[];
  /** True for the URL of a substituter that is this larder. */
  readonly isLarder: (substituter: string) => boolean;
}

/** The findings on this machine's own Nix: substituters, keys, and the user's rights. */
export function checkClient(facts: ClientFacts): readonly Finding[] {
  const { nix } = facts;
  if (nix === undefined) {
    const advice = "run this command on a client, with --server URL";
    return [findingsOn("nix.conf").notChecked("no Nix on this machine", advice)];
  }
  if (!listIn(nix.all, "substituters").some(facts.isLarder)) return [noClient(nix, facts)];
  return [substituters(nix, facts), keys(nix, facts), ...user(nix)];
}

/** A server's machine need not be a client. */
function noClient({ file }: NixClient, { url = "URL", publicKey }: ClientFacts): Finding {
  const key = publicKey === undefined ? "" : `, extra-trusted-public-keys = ${publicKey}`;
  const advice = `if it should be one, add to ${file}: extra-substituters = ${url}${key}`;
  return findingsOn("nix.conf").warning("this machine's Nix is no client of this larder", advice);
}

function substituters(nix: NixClient, { isLarder }: ClientFacts): Finding {
  const { ok, failed } = findingsOn("nix.conf substituters");
  const ofSystem = listIn(nix.system, "substituters").find(isLarder);
  if (ofSystem !== undefined) return ok(`${nix.file} has ${ofSystem}`);
  const ofUser = listIn(nix.all, "substituters").find(isLarder) ?? "";
  const isAllowed = !nix.hasDaemon || nix.isTrusted ||
    listIn(nix.system, "trusted-substituters").some((one) => bare(one) === bare(ofUser));
  if (isAllowed) return ok(`the settings of ${nix.user} have ${ofUser}`);
  return failed(
    `only ${nix.user} has ${ofUser}, and the daemon ignores it`,
    `add it to substituters or trusted-substituters in ${nix.file}`,
  );
}

function keys(nix: NixClient, { publicKey, upstreamKeys }: ClientFacts): Finding {
  const { ok, warning, failed, notChecked } = findingsOn("nix.conf keys");
  const trusted = listIn(
    nix.hasDaemon && !nix.isTrusted ? nix.system : nix.all,
    "trusted-public-keys",
  );
  if (nix.all.get("require-sigs")?.[0] === "false") {
    return warning("require-sigs is false: Nix takes unsigned paths", "remove that setting");
  }
  const missing = upstreamKeys.filter((key) => !trusted.includes(key));
  if (publicKey === undefined) {
    if (missing.length === 0) return ok("the keys of all upstreams are trusted");
    const fact = "larder's own key is unknown, and not all upstreams' keys are trusted";
    return notChecked(fact, "make larder reachable, or add the upstreams' keys");
  }
  if (trusted.includes(publicKey)) return ok(`${publicKey} is trusted`);
  const [name = ""] = publicKey.split(":");
  const former = trusted.find((key) => key.startsWith(`${name}:`));
  if (former !== undefined) {
    const advice = `replace it by ${publicKey}`;
    return failed(`${former} is trusted, which larder does not use`, advice);
  }
  const advice = `add it to ${nix.file}: extra-trusted-public-keys = ${publicKey}`;
  if (missing.length > 0) return failed("larder's key is not trusted", advice);
  return warning("only upstreams' keys are trusted: Nix refuses the uploads of others", advice);
}

function user({ user, isTrusted, hasDaemon, file }: NixClient): readonly Finding[] {
  const { ok } = findingsOn("nix.conf user");
  if (!hasDaemon) return [];
  if (isTrusted) return [ok(`${user} is trusted: Nix obeys --option substituters`)];
  return [ok(`${user} is not trusted: Nix ignores --option substituters, and needs it in ${file}`)];
}

/** URL without query and final slash. */
export function bare(url: string): string {
  return url.replace(/\?.*$/s, "").replace(/\/+$/, "").toLowerCase();
}
