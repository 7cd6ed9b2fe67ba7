import { STORE_DIR } from "../../nix/store_path.ts";
import { listIn, type NixConfText, type NixSettings, readNixConf } from "../../nix/nix_conf.ts";

/** The Nix of this machine, as its files and the environment set it up. */
export interface NixClient {
  /** The file of all users. */
  readonly file: string;
  /** The settings of all users. */
  readonly system: NixSettings;
  /** The same, with those of this user. */
  readonly all: NixSettings;
  /** True if a daemon decides which settings of this user count. */
  readonly hasDaemon: boolean;
  readonly user: string;
  readonly isTrusted: boolean;
}

export interface NixClientInputs {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Throws if the file is unreadable. */
  readonly readTextFile: (path: string) => string;
  readonly fileExists: (path: string) => boolean;
}

const DAEMON_SOCKET = "/nix/var/nix/daemon-socket/socket";

/** Reads the settings in the order of nix.conf(5). `undefined`: there is no Nix here. */
export function findNixClient(inputs: NixClientInputs): NixClient | undefined {
  const { env, fileExists } = inputs;
  const folder = env["NIX_CONF_DIR"] || "/etc/nix";
  const file = `${folder}/nix.conf`;
  const ofUser = userFiles(env).filter(fileExists);
  if (!fileExists(file) && ofUser.length === 0 && !fileExists(env["NIX_STORE_DIR"] || STORE_DIR)) {
    return undefined;
  }
  const read = (path: string) => {
    try {
      return inputs.readTextFile(path);
    } catch {
      // Nix itself reports a missing include.
      return undefined;
    }
  };
  const textOf = (path: string): NixConfText => (
    { text: read(path) ?? "", folder: path.slice(0, path.lastIndexOf("/")) }
  );
  const system = [textOf(file)];
  // Nix gives the first file of the user the last word.
  const user = [...ofUser.toReversed().map(textOf), { text: env["NIX_CONFIG"] ?? "", folder }];
  const settings = readNixConf({ texts: system, read });
  const name = env["USER"] || env["LOGNAME"] || "";
  return {
    file,
    system: settings,
    all: readNixConf({ texts: [...system, ...user], read }),
    hasDaemon: fileExists(env["NIX_DAEMON_SOCKET_PATH"] || DAEMON_SOCKET),
    user: name,
    isTrusted: isTrusted(name, listIn(settings, "trusted-users"), read),
  };
}

function userFiles(env: NixClientInputs["env"]): readonly string[] {
  const named = env["NIX_USER_CONF_FILES"];
  if (named !== undefined) return named.split(":").filter((path) => path !== "");
  const home = env["XDG_CONFIG_HOME"] || (env["HOME"] ? `${env["HOME"]}/.config` : undefined);
  const folders = [home, ...(env["XDG_CONFIG_DIRS"] || "/etc/xdg").split(":")];
  return folders.flatMap((folder) => folder ? [`${folder}/nix/nix.conf`] : []);
}

/** `trusted` has names of users, `@group` and `*`. */
function isTrusted(
  user: string,
  trusted: readonly string[],
  read: (path: string) => string | undefined,
): boolean {
  if (trusted.includes("*") || trusted.includes(user)) return true;
  const groups = (read("/etc/group") ?? "").split("\n").map((line) => line.split(":"));
  const account = (read("/etc/passwd") ?? "").split("\n").map((line) => line.split(":"))
    .find(([name]) => name === user);
  return groups.some(([name, , id, members = ""]) =>
    trusted.includes(`@${name}`) &&
    (id === account?.[3] || members.split(",").includes(user))
  );
}
