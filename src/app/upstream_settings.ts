import { Buffer } from "node:buffer";
import { Failure, reasonOf } from "../base/failure.ts";
import type { Settings } from "../config/options.ts";
import type { CaCertificates, HttpUpstreamSettings } from "../upstream/http/http_settings.ts";
import { type Login, type Netrc, parseNetrc } from "../upstream/http/netrc.ts";
import { certificatesIn, systemCertificates } from "./system_certificates.ts";

const NO_LOGINS: Netrc = { find: () => undefined };

/** What is needed to speak to each configured upstream, credentials included. */
export function upstreamSettings(
  settings: Settings,
  userAgent: string,
): readonly HttpUpstreamSettings[] {
  const netrcPath = settings["netrc-file"];
  const netrc = netrcPath === undefined
    ? NO_LOGINS
    : readOption("--netrc-file", netrcPath, parseNetrc);
  return settings["cache.upstream-url"].map(({ url: given, priority }) => {
    const parsed = new URL(given);
    const login = loginOf(parsed) ?? netrc.find(parsed.hostname);
    parsed.username = "";
    parsed.password = "";
    return {
      url: parsed.href.replace(/\/$/, ""),
      ...(login === undefined ? {} : { authorization: basic(login) }),
      ...(priority === undefined ? {} : { priority }),
      ...(hasProxy(parsed.protocol) ? { viaProxy: true } : {}),
      dialTimeoutMs: settings["cache.upstream-dialer-timeout"],
      headerTimeoutMs: settings["cache.upstream-response-header-timeout"],
      idleTimeoutMs: settings["cache.upstream-body-idle-timeout"],
      userAgent,
    };
  });
}

/**
 * Deno's fetch honours HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY by itself, in capitals or
 * not. Whether NO_PROXY excepts an upstream need not be known here.
 */
function hasProxy(protocol: string): boolean {
  const names = [`${protocol.replace(":", "")}_proxy`, "all_proxy"];
  return names.flatMap((name) => [name, name.toUpperCase()]).some((name) => Deno.env.get(name));
}

/**
 * The certificates that upstreams are checked with: the system's, which the executable does not
 * read by itself, and those of `--cache-upstream-ca-file`. None where no upstream needs them.
 */
export function caCertificates(settings: Settings): CaCertificates {
  const path = settings["cache.upstream-ca-file"];
  const own = path === undefined ? [] : readOption("--cache-upstream-ca-file", path, (text) => {
    const found = certificatesIn(text);
    if (found.length === 0) throw new Failure("broken", "it holds no PEM certificate");
    return found;
  });
  const urls = settings["cache.upstream-url"].map(({ url }) => url);
  const isNeeded = [...urls, settings["otel.grpc-url"]].some((url) => url?.startsWith("https:"));
  if (!isNeeded) return own;
  const system = { env: Deno.env.toObject(), readTextFile: Deno.readTextFileSync };
  return [...systemCertificates(system), ...own];
}

function readOption<Value>(option: string, path: string, parse: (text: string) => Value): Value {
  try {
    return parse(Deno.readTextFileSync(path));
  } catch (error) {
    const reason = reasonOf(error);
    throw new Failure("broken", `Cannot use ${option} ${path}: ${reason}`, {}, error);
  }
}

function loginOf(url: URL): Login | undefined {
  if (url.username === "" && url.password === "") return undefined;
  const { username, password } = url;
  return { login: decodeURIComponent(username), password: decodeURIComponent(password) };
}

function basic({ login, password }: Login): string {
  return `Basic ${Buffer.from(`${login}:${password}`).toString("base64")}`;
}

/** After this part of the response header timeout the next upstream is asked for a NAR, too. */
const HEDGE_PART = 3;

/** How long upstreams are waited for where a NAR is wanted. */
export function narPatience(upstreams: readonly HttpUpstreamSettings[]) {
  const idleTimeoutMs = Math.max(0, ...upstreams.map((upstream) => upstream.idleTimeoutMs));
  const headerTimeoutMs = Math.max(0, ...upstreams.map((upstream) => upstream.headerTimeoutMs));
  return { idleTimeoutMs, hedgeAfterMs: headerTimeoutMs / HEDGE_PART };
}
