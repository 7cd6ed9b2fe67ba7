import { reasonOf } from "../base/failure.ts";
import { textsIn } from "./kinds/list.ts";
import { type AnyOption, expectationOf, expectedInstead, HIDDEN } from "./kinds/option.ts";
import type { FoundOption, GivenValue } from "./sources/found.ts";

/** A valid value, or its problem in one line. */
export type Reading = { readonly value: unknown } | { readonly problem: string };

/** Parses one source's value for an option, or the file of a secret. */
export function readFound(
  option: AnyOption,
  found: FoundOption,
  readTextFile: (path: string) => string,
): readonly Reading[] {
  const kind = option.kind.item ?? option.kind;
  return found.given.flatMap((given): readonly Reading[] => {
    const shown = shownGiven(option, found, given);
    const refuse = (expected: string) => ({
      problem: `${found.spelled}: got ${shown}, expected ${expected}`,
    });
    if (given.mistyped !== undefined) {
      return [refuse(expectedInstead(kind, given.text) ?? given.mistyped)];
    }
    if (!found.isFile) return [readText(option, given.text, refuse)];
    try {
      return readSecret(option, found, readTextFile(given.text));
    } catch (error) {
      return [refuse(`a file that can be read (${reasonOf(error)})`)];
    }
  });
}

/** The value as a problem shows it: JSON, without secrets. */
function shownGiven(option: AnyOption, found: FoundOption, given: GivenValue): string {
  if (option.secret && !found.isFile) return HIDDEN;
  const { redact } = option.kind.item ?? option.kind;
  const { original } = given;
  return JSON.stringify(typeof original === "string" && redact ? redact(original) : original);
}

/** The problem of an option that one source gives several values. */
export function givenTwice(option: AnyOption, found: readonly FoundOption[]): string {
  const spellings = [...new Set(found.map(({ spelled }) => spelled))].join(" and ");
  const got = found.flatMap((one) => one.given.map((given) => shownGiven(option, one, given)));
  return `${spellings}: got ${got.join(" and ")}, expected only one`;
}

function readSecret(option: AnyOption, found: FoundOption, content: string): readonly Reading[] {
  // Programs end a secret's file with a line break, which is not part of the secret.
  const text = content.replace(/\r?\n$/, "");
  const inFile = option.kind.item ? linesOfList(option.kind, text) : [{ part: text, place: "" }];
  // An empty file is a mistake, not an empty list: without tokens larder would be open.
  const parts = inFile.length === 0 ? [{ part: "", place: "" }] : inFile;
  return parts.map(({ part, place }) =>
    readText(option, part, (expected) => {
      const got = part === "" ? "an empty file" : HIDDEN;
      return { problem: `${found.spelled}: ${place}got ${got}, expected ${expected}` };
    })
  );
}

/** The items of a list in a file, with their lines for problems. */
function linesOfList(kind: AnyOption["kind"], text: string) {
  return text.split(/\r?\n/).flatMap((line, index) =>
    textsIn(kind, line).map((part) => ({ part, place: `line ${index + 1}: ` }))
  );
}

function readText(
  option: AnyOption,
  text: string,
  refuse: (expected: string) => Reading,
): Reading {
  if (option.secret && text === HIDDEN) {
    return refuse(`the secret itself, which is only shown as ${HIDDEN}`);
  }
  const kind = option.kind.item ?? option.kind;
  try {
    return { value: kind.parse(text) };
  } catch (error) {
    return refuse(expectationOf(error));
  }
}
