import { Failure } from "../base/failure.ts";
import { excerpt } from "./excerpt.ts";

/** What a `.drv` file says of a build: the paths that it makes, and those that it needs built. */
export interface Derivation {
  /** The store path of each output; "" where it is known only once it is built. */
  readonly outputs: ReadonlyMap<string, string>;
  readonly inputs: readonly DerivationInput[];
}

export interface DerivationInput {
  /** The store path of the input's `.drv`. */
  readonly path: string;
  readonly outputs: readonly string[];
}

const HEAD = "Derive([";
const OUTPUT_REGEXP = /\("([^"\\]+)","([^"\\]*)","[^"\\]*","[^"\\]*"\),?/y;
const INPUT_REGEXP = /\("([^"\\]+)",\[([^[\]\\]*)\]\),?/y;
const WORD_REGEXP = /"([^"]*)"/g;

/** Reads the outputs and the inputs of a `.drv` file. Throws "bad-request" for another text. */
export function parseDerivation(text: string): Derivation {
  if (!text.startsWith(HEAD)) throw unreadable(text);
  const outputs = matchesFrom(OUTPUT_REGEXP, text, HEAD.length);
  const between = outputs.end;
  if (outputs.found.length === 0 || !text.startsWith("],[", between)) throw unreadable(text);
  const inputs = matchesFrom(INPUT_REGEXP, text, between + "],[".length);
  if (!text.startsWith("],", inputs.end)) throw unreadable(text);
  return {
    outputs: new Map(outputs.found.map(([, name = "", path = ""]) => [name, path])),
    inputs: inputs.found.map(([, path = "", names = ""]) => ({
      path,
      outputs: [...names.matchAll(WORD_REGEXP)].map(([, name = ""]) => name),
    })),
  };
}

/** The matches that follow each other without a gap, and where the last one ends. */
function matchesFrom(regexp: RegExp, text: string, start: number) {
  const found: RegExpExecArray[] = [];
  let end = start;
  for (;;) {
    regexp.lastIndex = end;
    const match = regexp.exec(text);
    if (match === null) return { found, end };
    found.push(match);
    end = regexp.lastIndex;
  }
}

function unreadable(text: string): Failure {
  return new Failure("bad-request", `Cannot read ${excerpt(text)} as a derivation`);
}
