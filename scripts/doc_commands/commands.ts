import type { Fence } from "./fences.ts";

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
