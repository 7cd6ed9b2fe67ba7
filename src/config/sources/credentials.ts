import { flagName, type OptionTable } from "../kinds/option.ts";
import type { Environment } from "./environment.ts";
import { type Findings, foundAs } from "./found.ts";

interface CredentialInputs {
  readonly env: Environment;
  readonly fileExists: (path: string) => boolean;
}

/**
 * The secrets that systemd passes by `LoadCredential=`: files in `$CREDENTIALS_DIRECTORY`, named
 * after the flag without its dashes.
 */
export function readCredentials(
  table: OptionTable,
  { env: { CREDENTIALS_DIRECTORY: folder }, fileExists }: CredentialInputs,
): Findings {
  if (!folder) return { found: [], problems: [] };
  const found = Object.entries(table).flatMap(([key, option]) => {
    const path = `${folder}/${credentialName(key)}`;
    if (!option.secret || !fileExists(path)) return [];
    const spelling = { key, option, names: {}, isFile: true } as const;
    return [
      foundAs(spelling, { from: "credential", name: path }, [{ text: path, original: path }]),
    ];
  });
  return { found, problems: [] };
}

/** `cache.admin-token` → `cache-admin-token`. */
function credentialName(key: string): string {
  return flagName(key).slice("--".length);
}
