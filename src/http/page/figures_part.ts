import type { Stats } from "../stats/stats.ts";
import { formatBytes, formatDate } from "../../base/format_units.ts";
import { formatNumber, formatPercent } from "./format.ts";
import { type Html, markup } from "./markup.ts";

/** Figures of this cache since its first start, of all its members. */
export function figuresPart({ lifetime, prefetch }: Stats): Html {
  const { narinfo, nar } = lifetime;
  const since = formatDate(Date.parse(lifetime.since));
  return markup`<dl class="figures">${[
    figure({
      name: "Saved in all",
      value: formatBytes(lifetime.saved_bytes),
      detail: markup`since <time datetime="${lifetime.since}">${since}</time>`,
    }),
    figure({
      name: "Served in all",
      value: formatBytes(lifetime.served_bytes),
      detail: `${formatBytes(lifetime.upstream_bytes)} fetched`,
    }),
    figure({ name: "Fetched ahead", ...prefetchFigure(prefetch) }),
    figure({
      name: "NAR hit ratio",
      value: formatPercent(nar.hit_ratio),
      detail: requestsOf(nar),
    }),
    figure({
      name: "Narinfo hit ratio",
      value: formatPercent(narinfo.hit_ratio),
      detail: requestsOf(narinfo),
    }),
  ]}</dl>`;
}

function figure(
  { name, value, detail }: {
    readonly name: string;
    readonly value: string;
    readonly detail: string | Html;
  },
): Html {
  return markup`<div><dt>${name}</dt><dd><b>${value}</b><span
 class="quiet">${detail}</span></dd></div>`;
}

function prefetchFigure({ is_on, nar, narinfo }: Stats["prefetch"]) {
  if (!is_on) return { value: "off", detail: "by --cache-prefetch" };
  const wasted = formatNumber(nar.wasted + narinfo.wasted);
  return { value: formatNumber(nar.used + narinfo.used), detail: `used, ${wasted} wasted` };
}

/** The requests behind the ratio, in words. */
function requestsOf({ requests }: Stats["lifetime"]["nar"]): string {
  return requests === 0 ? "no request yet" : `of ${formatNumber(requests)} requests`;
}
