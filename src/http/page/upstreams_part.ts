import type { Stats, UpstreamStats } from "../stats/stats.ts";
import { counted } from "../../base/format_units.ts";
import { ago, formatLatency, formatNumber, formatPercent } from "./format.ts";
import { type Html, markup, type Part } from "./markup.ts";
import { type ListsLook, rows } from "./rows.ts";
import { type Tone, toneIcon } from "./icons.ts";
import type { UpstreamState } from "../../upstream/upstream_health.ts";
import { upstreamStateOf } from "../stats/shown_state.ts";
import {
  lastAnswerOf,
  lastAnswerWords,
  lastErrorWords,
  rateWords,
  slownessWords,
  UPSTREAM_STATES,
  waitWords,
} from "../stats/upstream_words.ts";

const TONES: Readonly<Record<UpstreamState, Tone>> = {
  ...{ up: "good", down: "bad" },
  ...{ untrusted: "fair", status: "fair", nars: "fair", garbage: "fair" },
};

/**
 * The upstreams: their health, how fast they answer, and how much comes from each. Those that are
 * not up come first.
 */
export function upstreamsPart({ upstreams, at }: Stats, lists: ListsLook): Html {
  if (upstreams.length === 0) return markup`<p class="none">None is configured.</p>`;
  const found = upstreams.reduce((sum, { answers }) => sum + answers.found, 0);
  const isUp = (one: UpstreamStats) => upstreamStateOf(one, Date.parse(at)) === "up";
  const troubled = upstreams.filter((one) => !isUp(one));
  const look = {
    ...{ count: upstreams.length, section: "upstreams-section", list: "upstreams", ...lists },
    ...{ inSight: troubled.length, allAre: "up" },
  };
  return rows(
    [...troubled, ...upstreams.filter(isUp)],
    look,
    (one) => upstream(one, { found, at }),
  );
}

function upstream(one: UpstreamStats, all: { readonly found: number; readonly at: string }): Html {
  const { url, priority, answers, last_error } = one;
  const state = upstreamStateOf(one, Date.parse(all.at));
  const share = answers.found === 0 ? undefined : formatPercent(answers.found / all.found);
  return markup`<li class="upstream"><div><span class="mark">${toneIcon(TONES[state])}${
    UPSTREAM_STATES[state]
  }</span> <b>${url}</b></div><span class="detail latest">${latest(one, all.at)}${
    priority !== null && `priority ${formatNumber(priority)}`
  }</span>${counts(answers, share)}${waited(one)}${speed(one)}${
    last_error !== null &&
    markup`<span class="detail error">Last error ${ago(last_error.at, all.at)}: ${
      lastErrorWords(last_error)
    }.</span>`
  }</li>`;
}

/** The last answer, unless that is an error: the last error has its own line. */
function latest(one: UpstreamStats, at: string): Part {
  const [answer, { priority }] = [lastAnswerOf(one), one];
  if (answer !== null && !["found", "absent"].includes(answer.result)) return false;
  return markup`${lastAnswerWords(one)}${answer !== null && markup` ${ago(answer.at, at)}`}${
    priority !== null && ", "
  }`;
}

function counts({ found, absent, failed }: UpstreamStats["answers"], share: Part): Part {
  const all = found + absent + failed;
  return all > 0 &&
    markup`<span class="detail counts">${counted(all, "request")}: ${formatNumber(found)} found${
      share && markup` (${share} of all found)`
    }, ${formatNumber(absent)} not found, ${formatNumber(failed)} failed</span>`;
}

function waited(one: UpstreamStats): Part {
  const words = [waitWords(one.waits), slownessWords(one)].filter((text) => text !== undefined);
  return words.length > 0 &&
    markup`<span class="detail">${
      words.join("; ").replace(/^[a-z]/, (letter) => letter.toUpperCase())
    }.</span>`;
}

/** How soon its narinfos come, and how fast its NARs. */
function speed({ latencies_ms, nar_bytes_per_second }: UpstreamStats): Part {
  const rate = rateWords(nar_bytes_per_second);
  return markup`${sparkline(latencies_ms)}${
    rate !== undefined && markup`<span class="detail rate">${rate}</span>`
  }`;
}

/** The newest latencies as a line, from the left. */
function sparkline(latencies: readonly number[]): Part {
  if (latencies.length < 2) return false;
  const highest = Math.max(...latencies, 1);
  const sorted = latencies.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const step = 100 / (latencies.length - 1);
  const points = latencies.map((ms, index) =>
    `${(index * step).toFixed(1)} ${(22 - 20 * ms / highest).toFixed(1)}`
  );
  const label =
    `Latency of the last ${latencies.length} requests: median ${formatLatency(median)}, ` +
    `at most ${formatLatency(highest)}`;
  return markup`<span class="spark"><svg viewBox="0 0 100 24" preserveAspectRatio="none" role="img"
 aria-label="${label}"><title>${label}</title><path class="line first" d="M${
    points.join("L")
  }"/></svg><span>median ${formatLatency(median)}</span></span>`;
}
