import { choice, path } from "../kinds/plain.ts";
import type { OptionTable } from "../kinds/option.ts";

/** Options of the program as a whole. */
export const GENERAL_OPTIONS = {
  "config": {
    kind: path,
    shown: "larder/config.toml in $XDG_CONFIG_HOME (~/.config), else in /etc",
    help: "Configuration file: TOML, or YAML if it ends in .yaml",
    details: "The default files may be missing; a named one must exist.",
    variable: "LARDER_CONFIG_FILE",
    also: [{ variable: "NCPS_CONFIG_FILE" }],
    notInFile: true,
  },
  "log-level": {
    kind: choice("debug", "info", "warn", "error"),
    default: "info",
    help: "Lowest level of logged messages",
    also: [{ key: "log.level" }],
  },
  "log-format": {
    kind: choice("json", "pretty"),
    computed: ({ isTerminal }) => isTerminal() ? "pretty" as const : "json" as const,
    shown: "json; on a terminal pretty",
    example: "json",
    help: "JSON lines for machines, or pretty lines for people",
  },
  "netrc-file": {
    kind: path,
    isSecretFile: true,
    shown: "none",
    help: "User names and passwords for upstreams, in netrc format",
    also: [{ key: "cache.netrc-file" }],
  },
} as const satisfies OptionTable;
