import { parse as parseToml, TomlError } from "smol-toml";
import { messageOf } from "../../base/failure.ts";

/** What a configuration file holds, or where it cannot be read, without a word of its text. */
export type ConfigText =
  | { readonly value: unknown }
  | { readonly line: number; readonly column: number; readonly reason: string };

/** Reads YAML, and so JSON. */
export type ParseYaml = (text: string) => ConfigText;

/** True for a path whose file is YAML or JSON; every other file is TOML. */
export function isYamlPath(path: string): boolean {
  return /\.(ya?ml|json)$/i.test(path);
}

/** Reads TOML. */
export function parseTomlText(text: string): ConfigText {
  try {
    return { value: parseToml(text) };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const { line, column } = error;
    return { line, column, reason: firstLine(error).replace(/^Invalid TOML document: /, "") };
  }
}

/** Loads the parser: only who has such a file needs it. */
export async function loadYamlParser(): Promise<ParseYaml> {
  const { parseDocument } = await import("yaml");
  return (text) => {
    const document = parseDocument(text);
    const [problem] = [...document.errors, ...document.warnings];
    if (problem !== undefined) {
      const [{ line, col } = { line: 1, col: 1 }] = problem.linePos ?? [];
      const reason = firstLine(problem).replace(/ at line \d+, column \d+:?$/, "");
      return { line, column: col, reason };
    }
    try {
      return { value: document.toJS() };
    } catch (error) {
      // Aliases of aliases of aliases.
      return { line: 1, column: 1, reason: firstLine(error) };
    }
  };
}

/** The other lines quote the file, which may hold secrets. */
function firstLine(error: unknown): string {
  return messageOf(error).split("\n")[0] ?? "";
}
