import type { OptionTable } from "../option.ts";
import { type Findings, foundAs, spellingsOf } from "./found.ts";

/**
 * The secrets that systemd laid out (`LoadCredential=cache-admin-token:…`).
 *
 * `directory` is `$CREDENTIALS_DIRECTORY`. A file is called like the key, with dashes for dots.
 */
export function readCredentials(
  table: OptionTable,
  directory: string | undefined,
  fileExists: (path: string) => boolean,
): Findings {
  if (!directory) return { found: [], problems: [] };
  const found = spellingsOf(table).flatMap((spelling) => {
    if (!spelling.option.secret || spelling.isFile) return [];
    const spell = (key: string) => `${directory}/${key.replaceAll(".", "-")}`;
    const path = spell(spelling.written);
    if (!fileExists(path)) return [];
    const source = { from: "credential", name: path } as const;
    return [
      foundAs({ ...spelling, isFile: true }, source, [{ text: path, original: path }], spell),
    ];
  });
  return { found, problems: [] };
}
