import denoJson from "../../deno.json" with { type: "json" };
import { formatBytes } from "../base/format_units.ts";
import { visible } from "../base/visible.ts";
import type { Settings } from "../config/options.ts";
import { clientSettings, HOST_PLACEHOLDER, HOST_PLACEHOLDER_HINT } from "../nix/client_ways.ts";
import type { SecretKey } from "../nix/signature.ts";
import { clock } from "../runtime/current.ts";
import { limitOrigin, type SizeLimit } from "../space/size_limit.ts";
import type { LineSink, Logger } from "../telemetry/logger.ts";
import { paint, type Paints } from "../telemetry/pretty/paint.ts";
import type { StartProbe } from "../upstream/upstream_pool.ts";
import { keyFileOf, warnOfOpenKeys } from "./key_files.ts";
import { hasColors } from "./log_format.ts";
import { firewallLine, isLoopback, reachableUrl } from "./reachable_url.ts";
import { tokensOf, warnOfSharedTokens, warnOfShortTokens } from "./tokens.ts";

/** A server that has just begun to answer. */
export interface Start {
  readonly settings: Settings;
  /** `--cache-hostname` where it is set. */
  readonly hostname: string | undefined;
  readonly log: Logger;
  /** `undefined`: no signing. */
  readonly secretKey: SecretKey | undefined;
  /** Sink of the log's lines. */
  readonly output: LineSink;
  readonly probes: Promise<readonly StartProbe[]>;
  /** The address, and the folder of the files. */
  readonly place: { readonly url: string; readonly storage: string };
  readonly limit: Pick<SizeLimit, "bytes" | "source" | "reserveBytes">;
}

/** Logs where larder listens, and warns of risky settings. */
export function announce(start: Start): void {
  const { settings, hostname, log, secretKey, output, probes, place, limit } = start;
  const { version } = denoJson;
  const bucket = settings["cache.storage-s3-bucket"];
  const shown = bucket === undefined ? place : { ...place, storage: `s3://${bucket}` };
  const origin = limitOrigin(limit.source, limit.reserveBytes);
  const size = limit.bytes === Infinity ? "none" : formatBytes(limit.bytes);
  const size_limit = `${size} (${origin})`;
  const { deno } = Deno.version;
  log.info("server started", { ...shown, size_limit, version, deno, pid: Deno.pid });
  void warnOfOpenKeys(keyFiles(settings, place.storage), log);
  const tokens = tokensOf(settings);
  warnOfShortTokens(tokens, log);
  warnOfSharedTokens(tokens, log);
  warnOfMembers(settings, log);
  if (settings["cache.allow-put-verb"] && tokens.every(({ role }) => role === "read")) {
    const hasKey = settings["cache.trusted-upload-key"].length > 0;
    const kind = hasKey ? "uploads-without-token" : "uploads-refused";
    log.event(kind, { option: "--cache-put-token" });
  }
  if (!settings["cache.require-upstream-signature"]) {
    log.event("unsigned-narinfos-accepted", {
      option: "--cache-require-upstream-signature=false",
    });
  }
  // Printed last, so that no log line parts the banner from the marks of the upstreams.
  if (settings["log-format"] === "pretty") {
    const keys = secretKey ? [secretKey.publicKey] : settings["cache.upstream-public-key"];
    const facts = { storage: shown.storage, sizeLimit: size_limit };
    void addressFacts(place.url, hostname).then((address) =>
      showBanner(output, probes, {
        ...{ ...facts, ...address },
        publicKeys: keys.map(({ text }) => text),
      })
    );
  }
}

/** Where clients reach a listener, and what may keep them from it. */
async function addressFacts(listening: string, hostname: string | undefined) {
  if (listening.startsWith("unix:")) return { url: listening };
  // A listener on all addresses has this name (`listen.ts`).
  if (new URL(listening).hostname !== "localhost") return { url: listening };
  const url = await reachableUrl(listening, { hostname });
  return { url, firewall: await firewallLine(url) };
}

/** Warns of locks that one machine alone can need. */
export function warnOfMembers(settings: Settings, log: Pick<Logger, "event">): void {
  if (settings["cache.redis-addrs"].length === 0) return;
  if (settings["cache.database-url"].kind !== "sqlite") return;
  log.event("locks-of-one-machine", { option: "--cache-redis-addrs" });
}

/** The files of all secret keys in use. */
function keyFiles(settings: Settings, storage: string): readonly (string | undefined)[] {
  const own = settings["cache.sign-narinfo"] ? keyFileOf(settings, storage) : undefined;
  return [settings["server.tls-key"], own];
}

interface BannerFacts {
  /** The address for clients: a URL, or `unix:` and a path. */
  readonly url: string;
  /** How to let other machines through the firewall; `undefined` where none is up. */
  readonly firewall?: string | undefined;
  readonly storage: string;
  /** The size limit, and where it comes from. */
  readonly sizeLimit: string;
  /** The keys that clients need to trust. */
  readonly publicKeys: readonly string[];
}

/** How long the banner waits for upstreams. A slow one gets its mark later. */
const PROBES_WAIT_MS = 500;

/** Writes a banner into a log for people: the address, a client's lines, the upstreams. */
export async function showBanner(
  sink: LineSink,
  probes: Promise<readonly StartProbe[]>,
  facts: BannerFacts,
): Promise<void> {
  const paints = paint(hasColors());
  const soon = await clock.within(probes, PROBES_WAIT_MS);
  sink.write(listening(facts, paints) + upstreamMarks(soon ?? [], paints));
  if (soon === undefined) sink.write(upstreamMarks(await probes, paints));
}

/** The listener's address, and the settings that a client needs for it. */
function listening(facts: BannerFacts, { strong, faint }: Paints): string {
  const { url, firewall, storage, sizeLimit, publicKeys } = facts;
  const lines = url.startsWith("unix:") ? [] : [
    "",
    faint("  For a client's nix.conf:"),
    ...clientSettings(url, publicKeys).map((line) => `    ${line}`),
  ];
  const reach = url.startsWith("unix:")
    ? []
    : url.includes(HOST_PLACEHOLDER)
    ? [faint(`  A container does not know its address: ${HOST_PLACEHOLDER_HINT}`)]
    : isLoopback(url)
    ? [faint("  Only this machine reaches it: give another address with --server-addr")]
    : firewall === undefined
    ? []
    : [faint("  A firewall is up. To let other machines in:"), `    ${firewall}`];
  const head = `${strong(`larder ${denoJson.version}`)} listens at ${strong(visible(url))}`;
  const data = faint(`  Data in ${visible(storage)}, size limit ${sizeLimit}`);
  return `${["", head, data, ...reach, ...lines, ""].join("\n")}\n`;
}

/** Marks of upstreams: whether each answers. They differ in their shapes, too. */
function upstreamMarks(
  probes: readonly StartProbe[],
  { info, error: bad }: Paints,
): string {
  return probes.map(({ url, error }) => {
    const mark = error === undefined ? info("✓") : bad("✗");
    return `  ${mark} ${visible(url)} ${error === undefined ? "answers" : "does not answer"}\n`;
  }).join("");
}
