import denoJson from "../../deno.json" with { type: "json" };
import { visible } from "../base/visible.ts";
import { clientSettings } from "../nix/client_settings.ts";
import type { LineSink } from "../telemetry/logger.ts";
import { paint, type Paints } from "../telemetry/pretty/paint.ts";
import type { UpstreamLook } from "../upstream/upstream_pool.ts";
import { hasColors } from "./log_format.ts";

export interface BannerFacts {
  /** Of the listener: a URL, or `unix:` and a path. */
  readonly url: string;
  readonly storage: string;
  /** The keys that clients need to trust. */
  readonly publicKeys: readonly string[];
}

/** Writes the first lines of a log for people: the address, a client's lines, the upstreams. */
export function showBanner(
  sink: LineSink,
  looks: Promise<readonly UpstreamLook[]>,
  facts: BannerFacts,
): void {
  const paints = paint(hasColors());
  sink.write(listening(facts, paints));
  void looks.then((known) => sink.write(upstreamMarks(known, paints)));
}

/** Where larder listens, and what a client needs for it. */
export function listening(facts: BannerFacts, { strong, faint }: Paints): string {
  const { url, storage, publicKeys } = facts;
  const lines = url.startsWith("unix:") ? [] : [
    "",
    faint("  For a client's nix.conf:"),
    ...clientSettings(url, publicKeys).map((line) => `    ${line}`),
  ];
  const head = `${strong(`larder ${denoJson.version}`)} listens at ${strong(visible(url))}`;
  const data = faint(`  Data in ${visible(storage)}`);
  return `${["", head, data, ...lines, ""].join("\n")}\n`;
}

/** Which upstreams answer. The marks differ in their shapes, too. */
export function upstreamMarks(
  looks: readonly UpstreamLook[],
  { info, error: bad }: Paints,
): string {
  return looks.map(({ url, error }) => {
    const mark = error === undefined ? info("✓") : bad("✗");
    return `  ${mark} ${visible(url)} ${error === undefined ? "answers" : "does not answer"}\n`;
  }).join("");
}
