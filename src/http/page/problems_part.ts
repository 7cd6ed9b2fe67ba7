import type { ProblemStats, Stats } from "../stats/stats.ts";
import { clock, formatNumber } from "./format.ts";
import { type Html, markup } from "./markup.ts";
import { toneIcon } from "./icons.ts";
import { factsInWords, titleOf, whatToDo } from "./problem_words.ts";

/** What went wrong: a row for each kind, the newest first. */
export function problemsPart({ problems, at }: Stats): Html {
  if (problems.length === 0) return markup`<p class="none">None since the start.</p>`;
  return markup`<ul class="rows">${problems.map((one) => problem(one, at))}</ul>`;
}

function problem(one: ProblemStats, at: string): Html {
  const { level, count, first_at, last_at, over_at } = one;
  const isOver = over_at !== null;
  const word = isOver ? "over" : level === "error" ? "error" : "warning";
  const tone = isOver ? "idle" : level === "error" ? "bad" : "fair";
  const facts = factsInWords(one);
  const remedy = whatToDo(one);
  const [first, last] = [clock(first_at, at), clock(last_at, at)];
  return markup`<li class="${isOver && "over"}"><span class="mark">${
    toneIcon(tone)
  }${word}</span> <b>${titleOf(one)}</b>${
    facts.length > 0 && markup`<span class="detail">${facts.join(", ")}</span>`
  }<span class="detail">${
    count === 1
      ? markup`Once, at ${last}`
      : first_at.slice(0, 16) === last_at.slice(0, 16)
      ? markup`${formatNumber(count)} times, at ${last}`
      : markup`${formatNumber(count)} times, from ${first} to ${last}`
  }${isOver && markup`; over since ${clock(over_at, at)}`}</span>${
    remedy !== undefined && !isOver && markup`<span class="detail">What to do: ${remedy}.</span>`
  }</li>`;
}
