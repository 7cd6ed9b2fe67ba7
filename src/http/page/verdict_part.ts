import type { Stats } from "../stats/stats.ts";
import { formatBytes } from "../../base/format_units.ts";
import { type Html, markup, type Part } from "./markup.ts";
import { toneIcon } from "./icons.ts";

/** The first line of the page: all is well, or the problems and their remedies. */
export function verdictPart(stats: Stats): Html {
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
