/** A fenced block of a Markdown page. */
export interface Fence {
  /** The line of its first fence, counted from 1. */
  readonly line: number;
  readonly language: string;
  /** Why no machine of the tests can run it: `not-run="needs systemd"`. */
  readonly notRun: string | undefined;
  /** The file that holds it, for a block that is no command: `file="/etc/nix/netrc"`. */
  readonly file: string | undefined;
  readonly text: string;
}

const OPEN_REGEXP = /^(?<indent> *)```(?<language>\S*)(?<attributes>.*)$/;
const ATTRIBUTE_REGEXP = /(?<name>[\w-]+)="(?<value>[^"]*)"/g;

/** All fenced blocks, in order. */
export function readFences(markdown: string): readonly Fence[] {
  const fences: Fence[] = [];
  const lines = markdown.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const { indent = "", language = "", attributes = "" } =
      OPEN_REGEXP.exec(lines[at] ?? "")?.groups ?? {};
    if (OPEN_REGEXP.exec(lines[at] ?? "") === null) continue;
    const end = lines.indexOf(`${indent}\`\`\``, at + 1);
    const named = new Map(
      [...attributes.matchAll(ATTRIBUTE_REGEXP)].map((
        { groups },
      ) => [groups?.["name"], groups?.["value"]]),
    );
    const text = lines.slice(at + 1, end).map((line) => line.slice(indent.length)).join("\n");
    fences.push({
      line: at + 1,
      language,
      notRun: named.get("not-run"),
      file: named.get("file"),
      text: `${text}\n`,
    });
    at = end;
  }
  return fences;
}

/** A step of a page: a script, one command of a console, or a file to write. */
export interface Step {
  readonly line: number;
  readonly kind: "script" | "command" | "file";
  readonly text: string;
  /** Lines that the page shows below the command. */
  readonly shown: readonly string[];
  readonly path: string | undefined;
}

/** The steps of a block; none for a block that is no command and no file. */
export function stepsOf({ line, language, file, notRun, text }: Fence): readonly Step[] {
  if (notRun !== undefined) return [];
  if (file !== undefined) return [{ line, kind: "file", text, shown: [], path: file }];
  if (language === "sh") return [{ line, kind: "script", text, shown: [], path: undefined }];
  return language === "console" ? consoleSteps(line, text) : [];
}

/** Each `$ ` begins a command. It goes on behind a backslash; the rest is its output. */
function consoleSteps(line: number, text: string): readonly Step[] {
  const steps: { line: number; text: string; shown: string[] }[] = [];
  for (const [at, words] of text.trimEnd().split("\n").entries()) {
    const step = steps.at(-1);
    if (words.startsWith("$ ")) {
      steps.push({ line: line + 1 + at, text: words.slice(2), shown: [] });
    } else if (step?.text.endsWith("\\") && step.shown.length === 0) step.text += `\n${words}`;
    else step?.shown.push(words);
  }
  return steps.map((step) => ({ ...step, kind: "command", path: undefined }));
}

/** True if the page shows that the command fails. */
export function shownToFail({ shown }: Step): boolean {
  return shown.some((line) => /^larder: |^The target was not reached/.test(line));
}

/**
 * The lines that the page shows and the command did not print. Figures, hashes, times and widths
 * may differ.
 */
export function missingLines(shown: readonly string[], printed: string): readonly string[] {
  const found = new Set(printed.split("\n").map(shapeOf));
  return shown.filter((line) => line !== "…" && !found.has(shapeOf(line)));
}

function shapeOf(line: string): string {
  return line.replaceAll(/\b[0-9a-z]{32}\b/g, "HASH").replaceAll(/\d+(?:[.:-]\d+)*/g, "0")
    .replaceAll(/\s+/g, " ").trim();
}

/** The pages below `root` that have commands, also those that no test runs. */
export function commandPages(root: string): readonly string[] {
  const documents = [...Deno.readDirSync(`${root}/docs`)].map(({ name }) => `docs/${name}`)
    .filter((path) => path.endsWith(".md")).sort();
  return ["README.md", ...documents].filter((path) =>
    readFences(Deno.readTextFileSync(`${root}/${path}`)).some((fence) =>
      fence.notRun !== undefined || stepsOf(fence).length > 0
    )
  );
}
