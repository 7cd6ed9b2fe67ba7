import { inOneLine, type Rule } from "./rules.ts";

/** A page whose promises need rows. */
export interface PromisingPage {
  readonly path: string;
  /** Those of its sections that promise. */
  readonly sections: readonly string[];
  /** Sentences of these sections that promise nothing: plans, advice, and links to other pages. */
  readonly noPromises: readonly string[];
}

export const PROMISING_PAGES: readonly PromisingPage[] = [
  {
    path: "README.md",
    sections: ["larder", "Why larder", "Try it", "Install", "Clients"],
    noPromises: [
      "No release is published yet, so each way begins in a clone.",
      "[Installation](docs/installation.md) explains all of them, and macOS.",
    ],
  },
  {
    path: "docs/security.md",
    sections: [
      ...["Access control", "Behind a reverse proxy", "Browsers", "Threat model", "Web pages"],
      ...["Times of verification", "Tokens", "Permissions", "Confinement"],
    ],
    noPromises: [
      "A browser tells larder which page sent a request.",
      "These rules hold with and without tokens:",
      "Behind a reverse proxy, name its host there and pass the `Host` header on.",
      "A proxy on this machine that sends none of them must block `/gc` itself.",
      "Out of scope:",
      "an attacker with larder's user or root, and the confidentiality of paths in a cache that no " +
      "read token closes.",
      "Plain HTTP shows tokens to everybody on the way.",
      "Set a write token if strangers can reach larder.",
      "An attacker can point their own host name at larder, so that their page can read it (DNS " +
      "rebinding).",
      "Over plain HTTP, some browsers let a page hide all of these signs.",
      "[Trust](trust.md) lists the effect of each line of a narinfo.",
      "two may hold realisations with different signatures.",
      "Use one token for each client, so that the log names the client, and you can revoke one " +
      "token.",
      "To revoke a token, remove its line from the token file, then restart larder.",
      "It does not protect a short token.",
      "Do not choose tokens yourself:",
      "Only the rate of its requests limits a guesser that does not wait for answers.",
      "The last column names the clients that may send the request while no token closes it.",
      "Any network address stays open:",
      "an upstream's redirect may lead to any host.",
      "Variables stay readable:",
      "the S3 SDK reads its own late.",
      "Deno can narrow a grant of `/`, but not a grant of everything.",
      "The operating system can confine larder further:",
      // Limits of the confinement, and a measurement.
      "A larder that starts with `--allow-all`, and one on Windows, keep their permissions.",
      "All other commands keep their files.",
      "The confinement costs no memory.",
    ],
  },
];

/** Code and pictures promise nothing, but a comment behind a command does. */
const CODE_REGEXP = /^```.*?^```$/gms;
const BEHIND_COMMAND_REGEXP = /^[^#\s].*? # (?<comment>.+)$/gm;
const PICTURE_REGEXP = /<picture>.*?<\/picture>|!\[[^\]]*\]\([^)]*\)/gms;

/** A part that another script writes is checked against the code. */
const GENERATED_REGEXP = /<!-- (\w+):begin -->.*?<!-- \1:end -->/gs;
const HEAD_OF_TABLE_REGEXP = /^\|.*\n\|[ :|-]+\|$/gm;

/** The bold words that begin a point of a list sum up the sentences behind them. */
const TITLE_REGEXP = /^\*\*[^*]+\*\* (?=\S)/;

/** The sentences and table rows of a page that no row of `docs/rules.md` quotes, one line each. */
export function promiseProblems(
  { path, sections, noPromises }: PromisingPage,
  text: string,
  rules: readonly Rule[],
): readonly string[] {
  const promises = rules.filter(({ page }) => page === path)
    .map(({ promise }) => inOneLine(promise));
  return sections.flatMap((section) => {
    const points = pointsOf(text, section);
    if (points.length === 0) return [`${path}: has no section "${section}" with promises`];
    return points.flatMap((point) => {
      const quoted = promises.flatMap((promise) => placesOf(promise, point));
      return sentencesOf(point).filter(({ start, end, text }) =>
        !noPromises.includes(text) &&
        !quoted.some((place) => place.start < end && place.end > start)
      ).map(({ text }) => `${path}: no row of docs/rules.md quotes "${text}"`);
    });
  });
}

/** The paragraphs and the points of lists below a heading, each in one line. */
function pointsOf(text: string, section: string): readonly string[] {
  const sections = text.replaceAll(CODE_REGEXP, commentsIn).replaceAll(PICTURE_REGEXP, "")
    .replaceAll(GENERATED_REGEXP, "").replaceAll(HEAD_OF_TABLE_REGEXP, "")
    .split(/^#+ /m);
  const body = sections.find((text) => text.startsWith(`${section}\n`))?.slice(section.length);
  return (body ?? "").split(/\n\n|^\* |^(?=\| )/m)
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

/** A row of a table is one. */
function sentencesOf(point: string): readonly (Place & { readonly text: string })[] {
  if (point.startsWith("|")) return [{ text: point, start: 0, end: point.length }];
  return [...point.matchAll(/\S.*?(?:[.:!?](?= |$)|$)/g)].map(({ index, 0: text }) => (
    { text, start: index, end: index + text.length }
  ));
}

function placesOf(promise: string, point: string): readonly Place[] {
  const start = point.indexOf(promise);
  return start < 0 ? [] : [{ start, end: start + promise.length }];
}
