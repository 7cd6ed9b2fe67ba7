import type { ProblemStats, Stats } from "../stats/stats.ts";
import { clock, formatNumber } from "./format.ts";
import { type Html, markup, type Part } from "./markup.ts";
import { toneIcon } from "./icons.ts";
import { type ListsLook, rows } from "./rows.ts";
import { factsInWords, titleOf, whatToDo } from "../stats/problem_words.ts";

/** What a row names of the upstreams or files that have the problem. */
const SUBJECTS_MAX = 4;

/** The problems with one message, the newest first. */
type Kind = readonly [ProblemStats, ...ProblemStats[]];

/** What went wrong: a row for each kind, the newest first. */
export function problemsPart({ problems, at }: Stats, lists: ListsLook): Html {
  if (problems.length === 0) return markup`<p class="none">None since the start.</p>`;
  const kinds = kindsOf(problems);
  const look = { count: kinds.length, section: "problems-section", ...lists };
  return rows(kinds, look, (kind) => row(kind, at));
}

function kindsOf(problems: readonly ProblemStats[]): readonly Kind[] {
  const kinds = new Map<string, [ProblemStats, ...ProblemStats[]]>();
  for (const problem of problems) {
    const kind = kinds.get(problem.message);
    if (kind === undefined) kinds.set(problem.message, [problem]);
    else kind.push(problem);
  }
  return [...kinds.values()];
}

function row(kind: Kind, at: string): Html {
  const present = kind.filter(({ over_at }) => over_at === null);
  const isOver = present.length === 0;
  const isError = present.some(({ level }) => level === "error");
  const word = isOver ? "over" : isError ? "error" : "warning";
  const remedies = new Set(present.map(whatToDo).filter((remedy) => remedy !== undefined));
  const hidden = kind.length - SUBJECTS_MAX;
  return markup`<li class="problem${isOver && " over"}"><span class="mark">${
    toneIcon(isOver ? "idle" : isError ? "bad" : "fair")
  }${word}</span> <b>${titleOf(kind[0])}</b>${
    kind.slice(0, SUBJECTS_MAX).map((one) => subject(one, { isOver, at }))
  }${hidden > 0 && markup`<span class="detail">and ${formatNumber(hidden)} more</span>`}${
    times(kind, isOver, at)
  }${
    remedies.size > 0 &&
    markup`<span class="detail">What to do: ${[...remedies].join("; ")}.</span>`
  }</li>`;
}

/** The facts of one; the end of its own only where the kind lasts. */
function subject(one: ProblemStats, kind: { readonly isOver: boolean; readonly at: string }): Part {
  const facts = factsInWords(one).join(", ");
  const isOver = one.over_at !== null && !kind.isOver;
  return facts !== "" &&
    markup`<span class="detail">${facts}${
      isOver && markup`, over since ${clock(one.over_at, kind.at)}`
    }</span>`;
}

function times(kind: Kind, isOver: boolean, at: string): Html {
  const count = kind.reduce((sum, one) => sum + one.count, 0);
  const first = kind.map(({ first_at }) => first_at).toSorted()[0] ?? "";
  const last = kind.map(({ last_at }) => last_at).toSorted().at(-1) ?? "";
  const over = kind.map(({ over_at }) => over_at ?? "").toSorted().at(-1) ?? "";
  return markup`<span class="detail times">${
    count === 1
      ? markup`Once, at ${clock(last, at)}`
      : first.slice(0, 16) === last.slice(0, 16)
      ? markup`${formatNumber(count)} times, at ${clock(last, at)}`
      : markup`${formatNumber(count)} times, from ${clock(first, at)} to ${clock(last, at)}`
  }${isOver && markup`; over since ${clock(over, at)}`}</span>`;
}
