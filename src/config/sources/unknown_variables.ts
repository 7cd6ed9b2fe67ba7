import { suggestion } from "../../base/nearest.ts";
import type { OptionTable } from "../kinds/option.ts";
import type { Environment } from "./environment.ts";
import { ownSpellings, spellingsIn } from "./found.ts";

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
