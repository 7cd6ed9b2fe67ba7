/** The settings of a Nix client, in the words of nix.conf(5). */
export type NixSettings = ReadonlyMap<string, readonly string[]>;

/** A text with assignments, and the folder for its includes. */
export interface NixConfText {
  readonly text: string;
  readonly folder: string;
}

export interface NixConfInputs {
  /** Earlier ones are weaker. */
  readonly texts: readonly NixConfText[];
  /** The text of an included file; `undefined` for an unreadable one. */
  readonly read: (path: string) => string | undefined;
}

/** Names of Nix 1 for today's settings. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ["binary-caches", "substituters"],
  ["binary-cache-public-keys", "trusted-public-keys"],
  ["trusted-binary-caches", "trusted-substituters"],
]);

/** Nix has no limit, and recurses for ever. */
const INCLUDES_DEEP_MAX = 20;

/** Reads settings as Nix does: values, `extra-` names, and includes that may be missing. */
export function readNixConf({ texts, read }: NixConfInputs): NixSettings {
  const settings = new Map<string, readonly string[]>();
  for (const text of texts) readInto(settings, text, { read, depth: 0 });
  return settings;
}

interface Including extends Pick<NixConfInputs, "read"> {
  readonly depth: number;
}

function readInto(
  settings: Map<string, readonly string[]>,
  { text, folder }: NixConfText,
  { read, depth }: Including,
): void {
  for (const line of text.split("\n")) {
    const [plain = ""] = line.split("#");
    const [name = "", sign = "", ...values] = plain.trim().split(/[ \t\r]+/);
    if (name === "include" || name === "!include") {
      const path = sign.startsWith("/") ? sign : `${folder}/${sign}`;
      const included = depth < INCLUDES_DEEP_MAX ? read(path) : undefined;
      const below = { text: included ?? "", folder: path.slice(0, path.lastIndexOf("/")) };
      readInto(settings, below, { read, depth: depth + 1 });
    } else if (sign === "=") set(settings, name, values);
  }
}

function set(settings: Map<string, readonly string[]>, given: string, values: readonly string[]) {
  const isExtra = given.startsWith("extra-");
  const plain = isExtra ? given.slice("extra-".length) : given;
  const name = ALIASES.get(plain) ?? plain;
  const former = isExtra ? settings.get(name) ?? defaultOf(name) : [];
  settings.set(name, [...former, ...values.filter((value) => value !== "")]);
}

/** The defaults of Nix for lists. */
const DEFAULTS: ReadonlyMap<string, readonly string[]> = new Map([
  ["substituters", ["https://cache.nixos.org/"]],
  ["trusted-public-keys", ["cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY="]],
  ["trusted-users", ["root"]],
]);

/** The value of a list, or Nix's default for it. */
export function listIn(settings: NixSettings, name: string): readonly string[] {
  return settings.get(name) ?? defaultOf(name);
}

function defaultOf(name: string): readonly string[] {
  return DEFAULTS.get(name) ?? [];
}
