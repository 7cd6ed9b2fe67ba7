import { Buffer } from "node:buffer";
import { Failure, reasonOf } from "../base/failure.ts";
import { readNamedText } from "../base/named_file.ts";
import type { Settings } from "../config/options.ts";
import type { CaCertificates, HttpUpstreamSettings } from "../upstream/http/upstream_fetch.ts";
import { type Login, type Netrc, parseNetrc } from "../upstream/http/netrc.ts";
import { certificatesIn, systemCertificates } from "./system_certificates.ts";

const NO_LOGINS: Netrc = { find: () => undefined };

/** The connection settings of each configured upstream, credentials included. */
export async function upstreamSettings(
  settings: Settings,
  userAgent: string,
): Promise<readonly HttpUpstreamSettings[]> {
  const netrcPath = settings["netrc-file"];
  const netrc = netrcPath === undefined
    ? NO_LOGINS
    : await readOption("--netrc-file", netrcPath, parseNetrc);
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
 * True if Deno's fetch may use a proxy, by HTTP_PROXY, HTTPS_PROXY or ALL_PROXY in either case.
 * NO_PROXY does not matter here.
 */
function hasProxy(protocol: string): boolean {
  const names = [`${protocol.replace(":", "")}_proxy`, "all_proxy"];
  return names.flatMap((name) => [name, name.toUpperCase()]).some((name) => Deno.env.get(name));
}

/**
 * The trusted certificates for upstreams: those of the system and of `--cache-upstream-ca-file`.
 * None if no upstream uses TLS.
 */
export async function caCertificates(settings: Settings): Promise<CaCertificates> {
  const own = await ownCertificates(settings);
  const urls = settings["cache.upstream-url"].map(({ url }) => url);
  const isNeeded = [...urls, settings["otel.grpc-url"]].some((url) => url?.startsWith("https:"));
  if (!isNeeded) return own;
  const system = { env: Deno.env.toObject(), readTextFile: readNamedText };
  return [...await systemCertificates(system), ...own];
}

/** The certificates of `--cache-upstream-ca-file`. */
export async function ownCertificates(settings: Settings): Promise<CaCertificates> {
  const path = settings["cache.upstream-ca-file"];
  if (path === undefined) return [];
  return await readOption("--cache-upstream-ca-file", path, (text) => {
    const found = certificatesIn(text);
    if (found.length === 0) throw new Failure("broken", "it holds no PEM certificate");
    return found;
  });
}

async function readOption<Value>(
  option: string,
  path: string,
  parse: (text: string) => Value,
): Promise<Value> {
  try {
    return parse(await readNamedText(path));
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
