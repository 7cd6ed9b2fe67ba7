import type { HostTimes, Pull, PullPath, WholePull } from "../../history/pulls.ts";
import { counted, formatBytes } from "../../base/format_units.ts";
import { type PullWords, pullWords, shortTime, whatOf } from "../stats/pull_words.ts";
import { type Html, markup, type Part } from "./markup.ts";
import { MARK } from "./mark.ts";

/** Pulls of the page. */
export const PULLS_SHOWN = 5;

/** A pull, with its client as this reader may know it. */
export interface ShownPull<One extends Pull = Pull> {
  readonly pull: One;
  readonly client: string;
}

/**
 * The last pulls, or nothing while there is none. The newest is one line in sight; the page has room
 * for no more.
 */
export function pullsPart(pulls: readonly ShownPull[], nowMs: number): Part {
  const [newest] = pulls;
  return newest !== undefined &&
    markup`<details id="pulls" class="more"><summary id="pulls-shown">${
      newest.pull.isRunning ? "Running" : "Last"
    } pull: ${whatOf(newest.pull)}, ${shortTime(newest.pull.ms)}${
      newest.pull.isRunning && " so far"
    }${mostOf(newest.pull)}</summary>
${listOf(pulls, nowMs)}
<p class="quiet">Where the time of each client went: a link leads to its timeline. <a
 id="all-pulls" href="pulls">The last 200</a></p></details>`;
}

function listOf(pulls: readonly ShownPull[], nowMs: number, folder = "pulls/"): Html {
  return markup`<ul class="rows">${pulls.map((one) => row(one, nowMs, folder))}</ul>`;
}

/** Whom a slow pull waited for, if that took most of it. */
function mostOf(pull: Pull): string {
  const { ms, waitingMs, fetchingMs, upstreams: [slowest] } = pull;
  if (slowest?.host === undefined || (waitingMs + fetchingMs) * 2 < ms) return "";
  const { waitedMs, sentMs, host } = slowest;
  const what = waitedMs >= sentMs ? "waiting for" : "fetching from";
  const whole = shortTime(ms);
  const part = shortTime(Math.min(ms, Math.max(waitedMs, sentMs)));
  return `, ${part === whole ? "almost all of it" : `of which ${part}`} ${what} ${host}`;
}

function row({ pull, client }: ShownPull, nowMs: number, folder: string): Html {
  const words = pullWords(pull, client, nowMs);
  const { times, paths, bytes } = words;
  return markup`<li><a class="strong" id="pull-${pull.id}" href="${folder}${pull.id}">${
    whatOf(pull)
  }</a><span class="detail">${titleOf(words, pull)}: ${times}</span>${
    sharesBar(pull)
  }<span class="detail">${[paths, bytes].filter((part) => part !== "").join("; ")}</span></li>`;
}

/** The title below a heading that has the path's name. */
function titleOf({ title }: PullWords, pull: Pull): string {
  return title.replace(`, ${whatOf(pull)}`, "");
}

/** One bar for the whole pull: how much of its time was which. */
function sharesBar({ ms, waitingMs, fetchingMs, sendingMs, pauseMs }: Pull): Part {
  if (ms === 0) return "";
  let fromMs = 0;
  const part = (share: string, width: number) => {
    const shown = bar(share, fromMs, width, ms);
    fromMs += width;
    return shown;
  };
  return markup`<svg class="shares" viewBox="0 0 1000 8" preserveAspectRatio="none"
 aria-hidden="true">${part("waiting", waitingMs)}${part("fetching", fetchingMs)}${
    part("sending", sendingMs)
  }${part("pause", pauseMs)}</svg>`;
}

/** A stretch of time; a short one is still seen. */
function bar(share: string, fromMs: number, ms: number, wholeMs: number): Part {
  if (ms <= 0) return "";
  const scale = 1_000 / Math.max(1, wholeMs);
  const width = Math.max(2, ms * scale);
  const x = Math.min(fromMs * scale, 1_000 - width);
  return markup`<rect class="${share}" x="${tenth(x)}" width="${tenth(width)}" height="8"/>`;
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}

const SHARES = [
  ["waiting", "waited for an upstream"],
  ["fetching", "waited for the rest of a file"],
  ["sending", "sent what was here"],
  ["pause", "the client itself"],
] as const;

const LEGEND = markup`<p class="legend shares-legend">${
  SHARES.map(([share, text]) => markup`<span class="${share}">${text}</span>`)
}</p>`;

/** All pulls as a page of its own. */
export function pullsPage(pulls: readonly ShownPull[], look: PullsLook): Html {
  const some = pulls.length === 0
    ? markup`<p class="none">No client has asked for a path yet.</p>`
    : listOf(pulls, look.nowMs);
  return pageOf(look, {
    ...{ title: "Pulls of larder", heading: "Pulls", back: "./" },
    below: "What clients fetched, and where the time went: the newest first",
    sections: markup`<section aria-label="Pulls">${LEGEND}${some}</section>`,
  });
}

/** One pull as a page of its own: its slowest paths on the axis of its time. */
export function timelinePage({ pull, client }: ShownPull<WholePull>, look: PullsLook): Html {
  const words = pullWords(pull, client, look.nowMs);
  const others = pathCount(pull) - pull.slowest.length;
  return pageOf(look, {
    ...{ title: `${whatOf(pull)}: a pull of larder`, heading: whatOf(pull), back: "../" },
    below: titleOf(words, pull),
    sections:
      markup`<section aria-labelledby="time-title"><h2 id="time-title">Where the time went</h2>
<p>${words.times}.</p>${sharesBar(pull)}<p class="quiet">${
        [words.paths, words.bytes].filter((part) => part !== "").join("; ")
      }</p></section>
<section aria-labelledby="paths-title"><h2 id="paths-title">Slowest paths</h2>
${LEGEND}${
        pull.slowest.length === 0
          ? markup`<p class="none">No path took more than a moment.</p>`
          : markup`<ul class="rows">${pull.slowest.map((path) => pathRow(path, pull))}</ul>`
      }${
        others > 0 && markup`<p class="quiet">${counted(others, "path")} more took less time.</p>`
      }</section>`,
  });
}

interface PullsPage {
  readonly title: string;
  readonly heading: string;
  readonly below: string;
  /** The address of the status page. */
  readonly back: string;
  readonly sections: Html;
}

function pageOf({ style, icon }: PullsLook, page: PullsPage): Html {
  const { title, heading, below, back, sections } = page;
  return markup`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title><link rel="icon" href="${icon}">${style}</head>
<body><header>${MARK}<div><h1>${heading}</h1><p class="quiet">${below}</p></div>
<nav aria-label="Sections"><a id="back" href="${back}">Status page</a></nav></header>
<main>${sections}</main></body></html>`;
}

/** The look of pages that have no script. */
export interface PullsLook {
  readonly style: Html;
  readonly icon: string;
  readonly nowMs: number;
}

function pathCount({ paths: { hit, joined, ahead, fetched, absent } }: Pull): number {
  return hit + joined + ahead + fetched + absent;
}

function pathRow(path: PullPath, { ms }: Pull): Html {
  const { name, narinfo, nar, bytes } = path;
  const told = timesOf(path);
  const bars = [narinfo, nar].map((times) => {
    if (times === undefined) return false;
    const { atMs, waitedMs, sentMs, upstreams } = times;
    const fetchedMs = Math.min(sentMs, upstreams.reduce((sum, one) => sum + one.sentMs, 0));
    const sentAtMs = atMs + waitedMs;
    return [
      bar("waiting", atMs, waitedMs, ms),
      bar("fetching", sentAtMs, fetchedMs, ms),
      bar("sending", sentAtMs + fetchedMs, sentMs - fetchedMs, ms),
    ];
  });
  return markup`<li><b>${name}</b> <span class="quiet">${told}${
    bytes > 0 && `, ${formatBytes(bytes)}`
  }</span><svg class="shares" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img"
 aria-label="${name}: ${told}">${bars}</svg></li>`;
}

/** `waited 15 s for the narinfo and 1.5 s for the NAR from cache.nixos.org, sent in 2.0 s`. */
function timesOf({ narinfo, nar, result }: PullPath): string {
  const waits = [
    ...(narinfo?.waitedMs ? [{ what: "the narinfo", ...narinfo }] : []),
    ...(nar?.waitedMs ? [{ what: "the NAR", ...nar }] : []),
  ];
  const froms = waits.map(({ upstreams }) => fromOf(upstreams));
  const isOne = new Set(froms).size === 1;
  const waited = waits.map(({ waitedMs, what }, index) =>
    `${shortTime(waitedMs)} for ${what}${isOne && index < waits.length - 1 ? "" : froms[index]}`
  );
  const sentMs = (narinfo?.sentMs ?? 0) + (nar?.sentMs ?? 0);
  const told = [
    ...(waited.length === 0 ? [] : [`waited ${waited.join(" and ")}`]),
    ...(sentMs > 0 ? [`sent in ${shortTime(sentMs)}`] : []),
    ...(result === "absent" ? [waited.length === 0 ? "not found" : "asked in vain"] : []),
  ];
  return told.length === 0 ? "took a moment" : told.join(", ");
}

/**
 * ` from cache.nixos.org`; of two: ` from cache.nixos.org (12 s) and cache.example.org (1.0 s)`; of
 * none that had it: `, asking cache.nixos.org in vain`.
 */
function fromOf(upstreams: readonly HostTimes[]): string {
  const waited = upstreams.filter(({ host, waitedMs }) => host !== undefined && waitedMs > 0);
  const named = (some: readonly HostTimes[]) =>
    some.map(({ host, waitedMs }) =>
      waited.length === 1 ? host : `${host} (${shortTime(waitedMs)})`
    ).join(" and ");
  const had = waited.filter(({ isInVain }) => !isInVain);
  const none = waited.filter(({ isInVain }) => isInVain);
  return `${had.length > 0 ? ` from ${named(had)}` : ""}${
    none.length > 0 ? `, asking ${named(none)} in vain` : ""
  }`;
}
