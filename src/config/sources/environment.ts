import { flagName, type OptionTable } from "../kinds/option.ts";
import { type Findings, foundAs, givenText, ownSpellings, spellingsIn } from "./found.ts";
import { suggestion } from "../../base/nearest.ts";

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The settings of the environment. An empty variable counts as unset. That of a secret is a
 * warning: the server may be more open than the operator meant.
 */
export function readEnvironment(table: OptionTable, environment: Environment): Findings {
  const spellings = [...spellingsIn("variable", table)];
  const found = spellings.flatMap(([name, spelling]) => {
    const value = environment[name];
    if (!value) return [];
    const given = givenText(spelling, value);
    return [foundAs(spelling, { from: "environment", name }, given)];
  });
  const warnings = spellings
    .filter(([name, { option }]) => option.secret && environment[name] === "")
    .map(([name]) => `${name}: empty, so it counts as not set; set it, or remove it`);
  return { found, problems: [], warnings };
}

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

/** Known variables that look like larder's options but are read elsewhere. */
const KNOWN: ReadonlySet<string> = new Set([
  // Read by the commands for a running server.
  "LARDER_SERVER",
  "LARDER_TOKEN",
  "LARDER_TOKEN_FILE",
  // systemd sets it for CacheDirectory=.
  "CACHE_DIRECTORY",
  // Read by OpenTelemetry.
  "OTEL_SDK_DISABLED",
  "OTEL_SERVICE_NAME",
  "OTEL_RESOURCE_ATTRIBUTES",
  "OTEL_TRACES_SAMPLER",
  "OTEL_TRACES_SAMPLER_ARG",
  "OTEL_METRIC_EXPORT_INTERVAL",
]);

/** Kubernetes sets these in every container for a service named "cache" or "larder". */
const SERVICE_REGEXP =
  /^\w+(_SERVICE_(HOST|PORT)(_\w+)?=|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?=|_PORT=(tcp|udp|sctp):)/;

/** A warning for each variable that begins like one of the table's, but is none of them. */
export function unknownVariables(
  table: OptionTable,
  known: OptionTable,
  environment: Environment,
): readonly string[] {
  const own = spellingsIn("variable", table);
  const spellings = new Map([...own, ...spellingsIn("variable", known)]);
  const prefixes = new Set([...own.keys()].map(prefixOf));
  return Object.keys(environment).filter((name) =>
    environment[name] && name.includes("_") && prefixes.has(prefixOf(name)) &&
    !spellings.has(name) && !KNOWN.has(name) &&
    !SERVICE_REGEXP.test(`${name}=${environment[name]}`)
  ).sort().map((name) => {
    const hint = suggestion(name, ownSpellings(own.values(), "variable"));
    return `${name}: unknown variable${hint || "; larder does not read it"}`;
  });
}

function prefixOf(name: string): string {
  return name.slice(0, name.indexOf("_") + 1);
}
