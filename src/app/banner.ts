import denoJson from "../../deno.json" with { type: "json" };
import { visible } from "../base/visible.ts";
import { clientSettings } from "../nix/client_settings.ts";
import { HOST_PLACEHOLDER, HOST_PLACEHOLDER_HINT } from "../nix/client_ways.ts";
import { clock } from "../runtime/current.ts";
import type { LineSink } from "../telemetry/logger.ts";
import { paint, type Paints } from "../telemetry/pretty/paint.ts";
import { isLoopback } from "./reachable_url.ts";
import type { StartProbe } from "../upstream/upstream_pool.ts";
import { hasColors } from "./log_format.ts";

export interface BannerFacts {
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
export function listening(facts: BannerFacts, { strong, faint }: Paints): string {
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
