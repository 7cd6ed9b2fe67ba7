import type { ProblemStats, Stats } from "../stats/stats.ts";
import { counted, formatBytes } from "../../base/format_units.ts";
import { formatPercent } from "./format.ts";
import { type Html, markup, type Part } from "./markup.ts";
import { type Tone, toneIcon } from "./icons.ts";
import { factsInWords, titleOf, whatToDo } from "./problem_words.ts";

/** One thing that is wrong, and what to do about it. */
interface Fault {
  readonly tone: Exclude<Tone, "good" | "idle">;
  readonly text: string;
  readonly remedy: string | undefined;
}

/** A single event keeps the status line busy for so long. */
const EVENT_FOR_MS = 15 * 60_000;

/** Below this, downloads soon stop being stored. */
const DISK_FREE_MIN_BYTES = 1 << 30;

/** The first line of the page: all is well, or what is wrong and what to do. */
export function standingPart(stats: Stats): Html {
  const faults = faultsOf(stats);
  const isBad = faults.some(({ tone }) => tone === "bad");
  const tone = faults.length === 0 ? "good" : isBad ? "bad" : "fair";
  const title = faults.length === 0
    ? "All is well"
    : isBad
    ? "Only stored paths are served"
    : "Needs a look";
  const lines = faults.map(({ text, remedy }) =>
    markup`<li><b>${text}.</b>${
      remedy !== undefined && markup` <span>What to do: ${remedy}.</span>`
    }</li>`
  );
  return markup`<div class="standing ${tone}">${toneIcon(tone)}<div><h2>${title}</h2>
${faults.length === 0 ? markup`<p>${calm(stats)}</p>` : markup`<ul>${lines}</ul>`}</div></div>`;
}

function faultsOf(stats: Stats): readonly Fault[] {
  const upstreams = upstreamFault(stats);
  return [
    ...upstreams === undefined ? [] : [upstreams],
    ...spaceFaults(stats),
    ...stats.problems.filter((problem) => isPresent(problem, stats.at)).map(faultOf),
  ];
}

function upstreamFault({ upstreams }: Stats): Fault | undefined {
  const down = upstreams.filter(({ is_up }) => !is_up);
  const untrusted = upstreams.filter(({ is_up, last_answer }) =>
    is_up && last_answer?.result === "untrusted"
  );
  if (down.length > 0 && down.length === upstreams.length) {
    return {
      tone: "bad",
      text: upstreams.length === 1 ? "The upstream is down" : "All upstreams are down",
      remedy: "check the network of this machine; larder uses them again as soon as they answer",
    };
  }
  const names = (all: Stats["upstreams"]) => all.map(({ url }) => hostOf(url)).join(", ");
  if (down.length > 0) {
    const text = `${counted(down.length, "upstream")} of ${upstreams.length} ` +
      `${down.length === 1 ? "is" : "are"} down: ${names(down)}`;
    const remedy = "nothing at once, the others answer; check its URL and the network if it lasts";
    return { tone: "fair", text, remedy };
  }
  if (untrusted.length === 0) return undefined;
  return {
    tone: untrusted.length === upstreams.length ? "bad" : "fair",
    text: `No trusted key signs the narinfos of ${names(untrusted)}`,
    remedy: "give its public key with --cache-upstream-public-key",
  };
}

function spaceFaults({ size }: Stats): readonly Fault[] {
  const { pinned_bytes, limit_bytes, disk_free_bytes } = size;
  const faults: Fault[] = [];
  if (disk_free_bytes !== null && disk_free_bytes < DISK_FREE_MIN_BYTES) {
    const text = `The disk has only ${formatBytes(disk_free_bytes)} left`;
    faults.push({ tone: "fair", text, remedy: "make room, or lower --cache-max-size" });
  }
  if (limit_bytes !== null && limit_bytes > 0 && pinned_bytes > 0.95 * limit_bytes) {
    const text = `Pins fill ${formatPercent(pinned_bytes / limit_bytes)} of the size limit`;
    faults.push({ tone: "fair", text, remedy: "unpin something, or raise --cache-max-size" });
  }
  return faults;
}

/** Upstreams have a line of their own. */
function isPresent({ message, over_at, last_at, facts }: ProblemStats, at: string): boolean {
  if (over_at !== null || "upstream" in facts || message.startsWith("upstream")) return false;
  return Date.parse(at) - Date.parse(last_at) < EVENT_FOR_MS;
}

function faultOf(problem: ProblemStats): Fault {
  const facts = factsInWords(problem).join(", ");
  return {
    tone: "fair",
    text: facts === "" ? titleOf(problem) : `${titleOf(problem)} (${facts})`,
    remedy: whatToDo(problem),
  };
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
  const said = `${upstreams.length === 0 ? "No upstream is configured" : up}. ${room}.`;
  return isIdle
    ? markup`${said} No client has asked since the start: <a href="#use">use this cache</a>.`
    : said;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
