import { listIn } from "../../nix/nix_conf.ts";
import { type Finding, findingsOn } from "./finding.ts";
import { findNixClient, type NixClient } from "./nix_client.ts";
import { clock } from "../../runtime/current.ts";
import { boundedText } from "../../base/bounded_text.ts";
import { keyFileOf } from "../../app/key_files.ts";
import { storageFolder } from "../../app/folders.ts";
import type { DiagnosisOrder } from "./diagnose.ts";
import type { ServerState } from "./server_check.ts";
import { keyFacts } from "./storage_facts.ts";

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

const ANSWER_LIMIT_MS = 2_000;

/** A client has a few. */
const ASKED_MAX = 8;

const KEY_BYTES_MAX = 1_024;

export interface SubstitutersOrder {
  readonly substituters: readonly string[];
  /** The address of larder; `undefined`: unknown. */
  readonly url: string | undefined;
  /** Its public key; `undefined`: unknown. */
  readonly publicKey: string | undefined;
}

/** Substituters that are this larder under any name: they show its public key. */
export async function ownSubstituters(order: SubstitutersOrder): Promise<ReadonlySet<string>> {
  const { substituters, url, publicKey } = order;
  const http = substituters.filter((one) => /^https?:\/\//i.test(one)).slice(0, ASKED_MAX);
  const own = await Promise.all(http.map(async (one) => {
    if (url !== undefined && bare(one) === bare(url)) return [one];
    if (publicKey === undefined) return [];
    const shown = await clock.within(keyShownBy(bare(one)), ANSWER_LIMIT_MS);
    return shown === publicKey ? [one] : [];
  }));
  return new Set(own.flat());
}

/** `undefined` for a cache that shows none. */
async function keyShownBy(url: string): Promise<string | undefined> {
  using limit = clock.deadline(ANSWER_LIMIT_MS);
  try {
    const response = await fetch(`${url}/pubkey`, { signal: limit.signal, redirect: "manual" });
    if (response.status === 200) {
      return (await boundedText(response, { bytesMax: KEY_BYTES_MAX })).trim();
    }
    await response.body?.cancel();
  } catch {
    // An unreachable substituter is not ours to report.
  }
  return undefined;
}

/** Compares this machine's own Nix with larder: its address and its keys. */
export async function checkClientHere(
  { settings, target, host }: DiagnosisOrder,
  state: ServerState,
): Promise<readonly Finding[]> {
  const nix = findNixClient(host);
  const url = target?.shown.startsWith("http") ? target.shown : undefined;
  const shown = state.kind === "running" ? state.publicKey : undefined;
  const isSigning = settings["cache.sign-narinfo"] && shown !== null;
  const ofFile = isSigning
    ? await keyFacts(keyFileOf(settings, storageFolder(settings)))
    : undefined;
  const publicKey = shown ?? ofFile?.publicKey;
  const substituters = nix === undefined ? [] : [...listIn(nix.all, "substituters")];
  const own = await ownSubstituters({ substituters, url, publicKey });
  return checkClient({
    nix,
    url,
    publicKey,
    upstreamKeys: settings["cache.upstream-public-key"].map(({ text }) => text),
    isLarder: (substituter) => own.has(substituter),
  });
}
