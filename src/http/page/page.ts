import { createHash } from "node:crypto";
import { formatBytes, formatDate, formatSpan } from "../../base/format_units.ts";
import type { WholePull } from "../../history/pulls.ts";
import { type CacheAddress, HOST_PLACEHOLDER } from "../../nix/client_ways.ts";
import type { Stats } from "../stats/stats.ts";
import { EVICT_FORM, PIN_FORM } from "./actions_part.ts";
import { formatNumber, formatPercent } from "./format.ts";
import { historyPart, rangesPart } from "./history_part.ts";
import { toneIcon } from "./icons.ts";
import { ICON_URL, MARK } from "./mark.ts";
import { Html, markup, type Part } from "./markup.ts";
import { membersPart } from "./members_part.ts";
import { type Found, packagesPart } from "./packages_part.ts";
import { pinsPart } from "./pins_part.ts";
import { problemsPart } from "./problems_part.ts";
import {
  type PullsLook,
  pullsPage,
  pullsPart,
  type ShownPull,
  timelinePage,
} from "./pulls_part.ts";
import { spacePart } from "./space_part.ts";
import { transfersPart } from "./transfers_part.ts";
import { upstreamsPart } from "./upstreams_part.ts";
import { usePart } from "./use_part.ts";

/** The source files of the page. */
export interface PageSource {
  /** HTML with placeholders such as `{{ name }}`. */
  readonly template: string;
  readonly style: string;
  readonly script: string;
}

export interface PageFacts extends CacheAddress {
  readonly stats: Stats;
  readonly found: Found;
  /** The newest first. */
  readonly pulls: readonly ShownPull[];
  /** Show every row of the long lists. */
  readonly isWhole: boolean;
  /** As many of the newest pins are left out of their list. */
  readonly pinsFrom: number;
  /** The name of the pin that the reader has ended a moment ago. */
  readonly unpinned: string | undefined;
  /** False leaves the buttons out. */
  readonly mayManage: boolean;
  /** True if larder answers `/metrics`. */
  readonly hasMetrics: boolean;
}

/** The page for people: one document that asks for nothing but itself. */
export class Page {
  /** Headers that forbid the browser everything else. */
  readonly headers: Readonly<Record<string, string>>;
  readonly #source: PageSource;

  constructor({ template, ...source }: PageSource) {
    const style = withoutIndent(source.style);
    const script = withoutIndent(source.script);
    this.#source = { template: withoutIndent(template), style, script };
    const policy = [
      "default-src 'none'",
      `script-src '${hashOf(script)}'`,
      `style-src '${hashOf(style)}'`,
      "connect-src 'self'",
      "img-src data:",
      "base-uri 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
    ];
    this.headers = {
      "content-security-policy": policy.join("; "),
      // With "no-referrer", a browser sends the page's own forms with `Origin: null`.
      "referrer-policy": "same-origin",
    };
  }

  /** One pull, as a page of its own without a script. */
  timeline(shown: ShownPull<WholePull>, nowMs: number): string {
    return timelinePage(shown, this.#pullsLook(nowMs)).text;
  }

  /** The last pulls, as a page of their own without a script. */
  pulls(shown: readonly ShownPull[], nowMs: number): string {
    return pullsPage(shown, this.#pullsLook(nowMs)).text;
  }

  #pullsLook(nowMs: number): PullsLook {
    const style = new Html(`<style>${this.#source.style}</style>`);
    return { style, icon: ICON_URL, nowMs };
  }

  render(facts: PageFacts): string {
    const { template, style, script } = this.#source;
    const parts: Readonly<Record<string, Part>> = {
      style: new Html(`<style>${style}</style>`),
      script: new Html(`<script type="module">${script}</script>`),
      ...partsOf(facts),
    };
    return template.replace(/\{\{ (\w+) \}\}/g, (_, name) => {
      const part = parts[name];
      if (part === undefined) throw new Error(`Cannot render the page: no value for ${name}`);
      return markup`${part}`.text;
    });
  }
}

function partsOf(
  { stats, found, pulls, isWhole, mayManage, hasMetrics, url, publicKeys, ...place }: PageFacts,
): Readonly<Record<string, Part>> {
  const lists = { isWhole, range: stats.history.range };
  return {
    icon: ICON_URL,
    mark: MARK,
    host: URL.canParse(url) && !url.includes(HOST_PLACEHOLDER)
      ? new URL(url).host
      : "a binary cache for Nix",
    verdict: verdictPart(stats),
    figures: figuresPart(stats),
    ranges: rangesPart(stats.history.range),
    charts: historyPart(stats),
    space: spacePart(stats),
    transfers: transfersPart(stats, lists),
    pulls: pullsPart(pulls, Date.parse(stats.at)),
    upstreams: upstreamsPart(stats, lists),
    members: membersPart(stats, lists),
    packages: packagesPart(found, { mayManage }),
    pins: pinsPart(stats, { ...lists, ...place, mayManage }),
    unpinned: place.unpinned !== undefined && `Unpinned ${place.unpinned}.`,
    pin: mayManage && PIN_FORM,
    evict: mayManage && EVICT_FORM,
    metrics: hasMetrics && markup`<a href="metrics">Metrics</a>`,
    signIn: !mayManage && markup`<a href="sign-in">Sign in</a>`,
    problems: problemsPart(stats, lists),
    useFirst: isNew(stats) && usePart({ url, publicKeys }, { isFolded: false }),
    useLast: !isNew(stats) && usePart({ url, publicKeys }, { isFolded: true }),
    about: about(stats),
  };
}

/** True until the first request of a client, or a transfer: the page begins with its lines. */
function isNew({ lifetime, downloads, uploads, sends }: Stats): boolean {
  return lifetime.requests + downloads.count + uploads.count + sends.count === 0;
}

function about({ version, at, uptime_seconds }: Stats): Html {
  const shown = `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;
  return markup`larder ${version}, up for ${
    formatSpan(uptime_seconds)
  }. Figures of <time datetime="${at}">${shown}</time>.`;
}

/** Each request sends it, and browsers need no spaces in front, and no lines of comments. */
function withoutIndent(text: string): string {
  return text.replace(/^ *(?:\/\/.*|\/\*.*\*\/)\n|^ +/gm, "");
}

/** The hash of an inline text, in the form of a Content-Security-Policy. */
function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/** The first line of the page: all is well, or the problems and their remedies. */
function verdictPart(stats: Stats): Html {
  const { is_well, text, faults } = stats.verdict;
  const isBad = faults.some(({ level }) => level === "error");
  // Without upstreams nothing is wrong, and little comes.
  const isGood = is_well && stats.upstreams.length > 0;
  const tone = isGood ? "good" : isBad ? "bad" : "fair";
  const lines = faults.map(({ text, hint }) =>
    markup`<li><b>${text}.</b>${hint !== null && markup` <span>What to do: ${hint}.</span>`}</li>`
  );
  return markup`<div class="verdict ${tone}">${toneIcon(tone)}<div><h2>${text}</h2>
${is_well ? markup`<p>${calm(stats)}</p>` : markup`<ul>${lines}</ul>`}</div></div>`;
}

function calm({ upstreams, requests, size }: Stats): Part {
  const up = upstreams.length === 1
    ? "The upstream answers"
    : `${upstreams.length === 2 ? "Both" : `All ${upstreams.length}`} upstreams answer`;
  const room = size.limit_bytes === null
    ? `${formatBytes(size.used_bytes)} stored`
    : `${formatBytes(size.used_bytes)} of ${formatBytes(size.limit_bytes)} used`;
  const { hits, misses, joined, prefetched, absent } = requests.narinfo;
  const isIdle = hits + misses + joined + prefetched + absent === 0;
  const said = `${
    upstreams.length === 0
      ? "Only what was uploaded or imported is served: --cache-upstream-url names an upstream"
      : up
  }. ${room}.`;
  return isIdle
    ? markup`${said} No request since the start: <a id="use-this" href="#use">use this cache</a>.`
    : said;
}

/** Figures of this cache since its first start, of all its members. */
function figuresPart({ lifetime, prefetch }: Stats): Html {
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
