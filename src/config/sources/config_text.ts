import { parse as parseToml, TomlError } from "smol-toml";
import { messageOf } from "../../base/failure.ts";

/** A parsed configuration file, or the place of its error. Never quotes the file. */
export type ConfigText =
  | { readonly value: unknown }
  | { readonly line: number; readonly column: number; readonly reason: string };

/** Parses YAML, and so JSON. */
export type ParseYaml = (text: string) => ConfigText;

/** True for the path of a YAML or JSON file; every other file is TOML. */
export function isYamlPath(path: string): boolean {
  return /\.(ya?ml|json)$/i.test(path);
}

/** Parses TOML. */
export function parseTomlText(text: string): ConfigText {
  try {
    return { value: parseToml(text) };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const { line, column } = error;
    return { line, column, reason: firstLine(error).replace(/^Invalid TOML document: /, "") };
  }
}

/** Loads the YAML parser, on demand. */
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
      // Too many nested aliases.
      return { line: 1, column: 1, reason: firstLine(error) };
    }
  };
}

/** Further lines quote the file, which may hold secrets. */
function firstLine(error: unknown): string {
  return messageOf(error).split("\n")[0] ?? "";
}
