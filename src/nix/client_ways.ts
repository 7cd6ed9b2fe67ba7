/** Stands in a URL for a host that larder cannot know. */
export const HOST_PLACEHOLDER = "ADDRESS-OF-THIS-CACHE";

/** What to do about that host. */
export const HOST_PLACEHOLDER_HINT =
  `put the address that clients reach in place of ${HOST_PLACEHOLDER}, or set --cache-hostname to it`;

/** The address of this cache for a client, and the keys that it has to trust. */
export interface CacheAddress {
  readonly url: string;
  readonly publicKeys: readonly string[];
}

/** One way to let a client use this cache. */
export interface ClientWay {
  readonly id: string;
  readonly name: string;
  /** Instruction for the use of the lines. */
  readonly instruction: string;
  readonly lines: string;
}

/** The lines for each kind of client. */
export function clientWays({ url, publicKeys }: CacheAddress): readonly ClientWay[] {
  const all = clientSettings(url, publicKeys);
  const conf = `${all.join("\n")}\n`;
  const settings = nixAttributes(all);
  const flags = all.map((line) => {
    const [name, ...value] = line.split(" = ");
    return ` \\\n  --option ${name} '${value.join(" = ")}'`;
  });
  return [
    {
      id: "conf",
      name: "nix.conf",
      instruction: "Add to /etc/nix/nix.conf, then restart the nix-daemon.",
      lines: conf,
    },
    {
      id: "nixos",
      name: "NixOS",
      instruction: "Add to configuration.nix.",
      lines: `nix.settings = {\n${indented(settings)}};\n`,
    },
    {
      id: "darwin",
      name: "nix-darwin",
      instruction: "Add to darwin-configuration.nix.",
      lines: `nix.settings = {\n${indented(settings)}};\n`,
    },
    {
      id: "flake",
      name: "Flake",
      instruction: "Add to flake.nix, beside inputs and outputs.",
      lines: `nixConfig = {\n${indented(settings)}};\n`,
    },
    {
      id: "ci",
      name: "CI",
      instruction: "Add to a job. This is the form of GitHub Actions.",
      lines: `env:\n  NIX_CONFIG: |\n${indented(indented(conf))}`,
    },
    {
      id: "once",
      name: "One command",
      instruction: "Run in a shell of a trusted user. It changes no settings.",
      lines: `nix build nixpkgs#hello${flags.join("")}\n`,
    },
  ];
}

/** The settings as attributes of the Nix language. */
function nixAttributes(settings: readonly string[]): string {
  return settings.map((line) => {
    const [name = "", value = ""] = line.split(/ = (.*)/);
    if (!name.startsWith("extra-")) return `${name} = ${value};\n`;
    return `${name} = [ ${value.split(" ").map((one) => `"${one}"`).join(" ")} ];\n`;
  }).join("");
}

function indented(lines: string): string {
  return lines.replace(/^(?=.)/gm, "  ");
}

/** Seconds. If the cache is off, Nix soon goes on to its next substituter. */
const CONNECT_TIMEOUT_S = 3;

/** Seconds. By itself, Nix remembers a 404 for an hour, also one that an outage caused. */
const NEGATIVE_TTL_S = 60;

/**
 * The lines for a client's `nix.conf` that let it use a cache. They extend its settings.
 * `publicKeys`: those that sign the narinfos of the cache.
 */
export function clientSettings(url: string, publicKeys: readonly string[]): readonly string[] {
  return [
    `extra-substituters = ${url}`,
    ...publicKeys.length === 0 ? [] : [`extra-trusted-public-keys = ${publicKeys.join(" ")}`],
    `narinfo-cache-negative-ttl = ${NEGATIVE_TTL_S}`,
    `connect-timeout = ${CONNECT_TIMEOUT_S}`,
  ];
}
