import { inOneLine, type Rule } from "./rules.ts";

/** The page whose promises need rows, and those of its sections that promise. */
const PAGE = "README.md";
const SECTIONS: readonly string[] = ["larder", "Why larder", "Try it", "Install", "Clients"];

/** Sentences of these sections that promise nothing: plans, and links to further pages. */
const NO_PROMISES: readonly string[] = [
  "No release is published yet, so each way begins in a clone.",
  "[Installation](docs/installation.md) explains all four, and macOS.",
];

/** Code and pictures promise nothing, but a comment behind a command does. */
const CODE_REGEXP = /^```.*?^```$/gms;
const BEHIND_COMMAND_REGEXP = /^[^#\s].*? # (?<comment>.+)$/gm;
const PICTURE_REGEXP = /<picture>.*?<\/picture>|!\[[^\]]*\]\([^)]*\)/gms;

/** The bold words that begin a point of a list sum up the sentences behind them. */
const TITLE_REGEXP = /^\*\*[^*]+\*\* (?=\S)/;

/** The sentences of the README that no row of `docs/rules.md` quotes, one line each. */
export function promiseProblems(readme: string, rules: readonly Rule[]): readonly string[] {
  const promises = rules.filter(({ page }) => page === PAGE)
    .map(({ promise }) => inOneLine(promise));
  return SECTIONS.flatMap((section) => {
    const points = pointsOf(readme, section);
    if (points.length === 0) return [`${PAGE}: has no section "${section}" with promises`];
    return points.flatMap((point) => {
      const quoted = promises.flatMap((promise) => placesOf(promise, point));
      return sentencesOf(point).filter(({ start, end, text }) =>
        !NO_PROMISES.includes(text) &&
        !quoted.some((place) => place.start < end && place.end > start)
      ).map(({ text }) => `${PAGE}: no row of docs/rules.md quotes "${text}"`);
    });
  });
}

/** The paragraphs and the points of lists below a heading, each in one line. */
function pointsOf(readme: string, section: string): readonly string[] {
  const sections = readme.replaceAll(CODE_REGEXP, commentsIn).replaceAll(PICTURE_REGEXP, "")
    .split(/^#+ /m);
  const body = sections.find((text) => text.startsWith(`${section}\n`))?.slice(section.length);
  return (body ?? "").split(/\n\n|^\* /m)
    .map((point) => inOneLine(point).trim().replace(TITLE_REGEXP, ""))
    .filter((point) => point !== "");
}

/** The comments behind the commands of a code block, as paragraphs. */
function commentsIn(block: string): string {
  return [...block.matchAll(BEHIND_COMMAND_REGEXP)]
    .map(({ groups }) => `\n\n${groups?.["comment"]}`).join("");
}

interface Place {
  readonly start: number;
  readonly end: number;
}

function sentencesOf(point: string): readonly (Place & { readonly text: string })[] {
  return [...point.matchAll(/\S.*?(?:[.:!?](?= |$)|$)/g)].map(({ index, 0: text }) => (
    { text, start: index, end: index + text.length }
  ));
}

function placesOf(promise: string, point: string): readonly Place[] {
  const start = point.indexOf(promise);
  return start < 0 ? [] : [{ start, end: start + promise.length }];
}
