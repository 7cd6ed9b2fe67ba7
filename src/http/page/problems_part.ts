import type { ProblemStats, Stats } from "../stats/stats.ts";
import { formatNumber, timeOfDay } from "./format.ts";
import { type Html, markup, type Part } from "./markup.ts";
import { toneIcon } from "./icons.ts";
import { type ListsLook, rows } from "./rows.ts";
import {
  isInVerdict,
  type ProblemKind,
  problemKinds,
  remedyOf,
  SUBJECTS_MAX,
  subjectWords,
} from "../stats/problem_kinds.ts";
import { titleOf } from "../stats/problem_words.ts";

type ListedKind = ProblemKind<ProblemStats>;

/** Problems: a row for each kind, the newest first, and those that are over in a fold. */
export function problemsPart({ problems, verdict, at }: Stats, lists: ListsLook): Html {
  if (problems.length === 0) return markup`<p class="none">None since the start.</p>`;
  const all = problemKinds(problems);
  const present = all.filter((kind) => !isOver(kind));
  const kinds = [...present, ...all.filter(isOver)];
  const look = {
    ...{ count: kinds.length, section: "problems-section", list: "problems", ...lists },
    // The status line names the others, too.
    ...{ inSight: Math.min(1, present.length), allAre: "over" },
  };
  const hints = verdict.faults.map(({ hint }) => hint);
  return rows(kinds, look, (kind) => row(kind, { at, hints }));
}

/** The time of the figures, and the hints of the status line. */
interface RowParts {
  readonly at: string;
  readonly hints: readonly (string | null)[];
}

function row(kind: ListedKind, { at, hints }: RowParts): Html {
  const isPast = isOver(kind);
  const isError = kind.some(({ level, over_at }) => over_at === null && level === "error");
  const word = isPast ? "over" : isError ? "error" : "warning";
  const remedy = remedyOf(kind);
  const hidden = kind.length - SUBJECTS_MAX;
  return markup`<li class="problem${isPast && " over"}"><span class="mark">${
    toneIcon(isPast ? "idle" : isError ? "bad" : "fair")
  }${word}</span> <b>${titleOf(kind[0])}</b>${
    kind.slice(0, SUBJECTS_MAX).map((one) => subject(one, { title: titleOf(kind[0]), isPast, at }))
  }${hidden > 0 && markup`<span class="detail">and ${formatNumber(hidden)} more</span>`}${
    times(kind, isPast, at)
  }${
    remedy !== "" &&
    markup`<span class="detail">What to do: ${
      isInVerdict(remedy, hints) ? linkToVerdict(kind) : remedy
    }.</span>`
  }</li>`;
}

function isOver(kind: ListedKind): boolean {
  return kind.every(({ over_at }) => over_at !== null);
}

function linkToVerdict([{ part }]: ListedKind): Html {
  const id = `remedy-of-${part.replaceAll(" ", "-")}`;
  return markup`<a id="${id}" href="#verdict">see the status above</a>`;
}

interface KindLook {
  readonly title: string;
  readonly isPast: boolean;
  readonly at: string;
}

/** The facts of one. Its end stands only where it differs from the kind's. */
function subject(one: ProblemStats, kind: KindLook): Part {
  const facts = subjectWords(one, kind.title);
  const hasEnded = one.over_at !== null && !kind.isPast;
  return facts !== "" &&
    markup`<span class="detail">${facts}${
      hasEnded && markup`, over since ${timeOfDay(one.over_at, kind.at)}`
    }</span>`;
}

function times(kind: ListedKind, isPast: boolean, at: string): Html {
  const count = kind.reduce((sum, one) => sum + one.count, 0);
  const first = kind.map(({ first_at }) => first_at).toSorted()[0] ?? "";
  const last = kind.map(({ last_at }) => last_at).toSorted().at(-1) ?? "";
  const over = kind.map(({ over_at }) => over_at ?? "").toSorted().at(-1) ?? "";
  const again = comeAgain(kind);
  return markup`<span class="detail times">${
    count === 1
      ? markup`Once, at ${timeOfDay(last, at)}`
      : isSameMinute(first, last)
      ? markup`${formatNumber(count)} times, at ${timeOfDay(last, at)}`
      : markup`${formatNumber(count)} times, from ${timeOfDay(first, at)} to ${timeOfDay(last, at)}`
  }${again !== undefined && markup`; again since ${timeOfDay(again, at)}`}${
    isPast && markup`; over since ${timeOfDay(over, at)}`
  }</span>`;
}

/** Begin of the present outage, if one of its kind was over before; else `undefined`. */
function comeAgain(kind: ListedKind): string | undefined {
  const [longest] = kind.filter(({ over_at }) => over_at === null)
    .toSorted((a, b) => a.begun_at < b.begun_at ? -1 : 1);
  if (longest === undefined || isSameMinute(longest.first_at, longest.begun_at)) return undefined;
  return longest.begun_at;
}

function isSameMinute(one: string, other: string): boolean {
  return one.slice(0, 16) === other.slice(0, 16);
}
