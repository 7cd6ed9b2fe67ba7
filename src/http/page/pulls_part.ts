import type { Pull, PullPath, WholePull } from "../../history/pulls.ts";
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
    markup`<details id="pulls" class="more"><summary id="pulls-shown">Last pull: ${
      whatOf(newest.pull)
    }, ${shortTime(newest.pull.ms)}${mostOf(newest.pull)}</summary>
<ul class="rows">${pulls.map((one) => row(one, nowMs))}</ul>
<p class="quiet">Where the time of each client went: a link leads to its timeline. <a
 id="all-pulls" href="pulls">The last 200 as JSON</a></p></details>`;
}

/** What took most of a slow pull. */
function mostOf({ ms, waitingMs, fetchingMs, upstreams }: Pull): string {
  const [slowest] = upstreams;
  const upstreamMs = waitingMs + fetchingMs;
  if (slowest?.host === undefined || upstreamMs * 2 < ms) return "";
  return `, of which ${shortTime(upstreamMs)} for ${slowest.host}`;
}

function row({ pull, client }: ShownPull, nowMs: number): Html {
  const words = pullWords(pull, client, nowMs);
  const { times, paths, bytes } = words;
  return markup`<li><a class="strong" id="pull-${pull.id}" href="pulls/${pull.id}">${
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
  ["fetching", "sent while it came from an upstream"],
  ["sending", "sent from the store"],
  ["pause", "the client itself"],
] as const;

/** One pull as a page of its own: its slowest paths on the axis of its time. */
export function timelinePage({ pull, client }: ShownPull<WholePull>, look: TimelineLook): Html {
  const { style, nowMs } = look;
  const words = pullWords(pull, client, nowMs);
  const others = pathCount(pull) - pull.slowest.length;
  return markup`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${whatOf(pull)}: a pull of larder</title><link rel="icon" href="${look.icon}">${style}</head>
<body><header>${MARK}<div><h1>${whatOf(pull)}</h1><p class="quiet">${titleOf(words, pull)}</p></div>
<nav aria-label="Sections"><a id="back" href="../">Status page</a></nav></header>
<main><section aria-labelledby="time-title"><h2 id="time-title">Where the time went</h2>
<p>${words.times}.</p>${sharesBar(pull)}<p class="quiet">${
    [words.paths, words.bytes].filter((part) => part !== "").join("; ")
  }</p></section>
<section aria-labelledby="paths-title"><h2 id="paths-title">Slowest paths</h2>
<p class="legend shares-legend">${
    SHARES.map(([share, text]) => markup`<span class="${share}">${text}</span>`)
  }</p>${
    pull.slowest.length === 0
      ? markup`<p class="none">No path took more than a moment.</p>`
      : markup`<ul class="rows">${pull.slowest.map((path) => pathRow(path, pull))}</ul>`
  }${
    others > 0 && markup`<p class="quiet">${counted(others, "path")} more took less time.</p>`
  }</section></main></body></html>`;
}

export interface TimelineLook {
  readonly style: Html;
  readonly icon: string;
  readonly nowMs: number;
}

function pathCount({ paths: { hit, joined, ahead, fetched, absent } }: Pull): number {
  return hit + joined + ahead + fetched + absent;
}

function pathRow(path: PullPath, { ms }: Pull): Html {
  const { name, narinfo, nar, bytes } = path;
  const sent = path.result === "hit" ? "sending" : "fetching";
  const told = timesOf(path);
  return markup`<li><b>${name}</b> <span class="quiet">${told}${
    bytes > 0 && `, ${formatBytes(bytes)}`
  }</span><svg class="shares" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img"
 aria-label="${name}: ${told}">${
    narinfo !== undefined && [
      bar("waiting", narinfo.atMs, narinfo.waitedMs, ms),
      bar(sent, narinfo.atMs + narinfo.waitedMs, narinfo.sentMs, ms),
    ]
  }${
    nar !== undefined && [
      bar("waiting", nar.atMs, nar.waitedMs, ms),
      bar(sent, nar.atMs + nar.waitedMs, nar.sentMs, ms),
    ]
  }</svg></li>`;
}

/** `waited 15 s for the narinfo and 1.5 s for the NAR from cache.nixos.org, sent in 2.0 s`. */
function timesOf({ narinfo, nar, host, result }: PullPath): string {
  const waits = [
    ...(narinfo?.waitedMs ? [`${shortTime(narinfo.waitedMs)} for the narinfo`] : []),
    ...(nar?.waitedMs ? [`${shortTime(nar.waitedMs)} for the NAR`] : []),
  ];
  const from = host === undefined ? "" : ` from ${host}`;
  const sentMs = (narinfo?.sentMs ?? 0) + (nar?.sentMs ?? 0);
  const told = [
    ...(waits.length === 0 ? [] : [`waited ${waits.join(" and ")}${from}`]),
    ...(sentMs > 0 ? [`sent in ${shortTime(sentMs)}`] : []),
    ...(result === "absent" ? ["not found"] : []),
  ];
  return told.length === 0 ? "took a moment" : told.join(", ");
}
