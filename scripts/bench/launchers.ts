import denoJson from "../../deno.json" with { type: "json" };
import { nginxConf, type NginxSite } from "./nginx_conf.ts";
import {
  DIRECTORY,
  freePort,
  LARDER,
  type Launcher,
  launchProcess,
  PEER,
  PROXY,
} from "./server.ts";
import type { Workplace } from "./workplace.ts";

/** The variables that servers inherit: no option of larder is among them. */
const PASSED_ON = ["PATH", "HOME", "TMPDIR", "DENO_DIR", "XDG_CACHE_HOME"];

/** nginx serving the files of `root`; the upstream of the other two, too. */
export function directoryLauncher(workplace: Workplace, root: string): Launcher {
  return nginxLauncher(workplace, DIRECTORY, () => ({ kind: "directory", root }));
}

/** nginx as a caching proxy before `upstreamUrl`. */
export function proxyLauncher(workplace: Workplace, upstreamUrl: string): Launcher {
  return nginxLauncher(workplace, PROXY, (folder) => ({
    kind: "proxy",
    cacheFolder: `${folder}/cache`,
    upstreamUrl,
  }));
}

/** nginx in front of a larder, sending the NAR files of that one's folder. */
export function frontLauncher(
  workplace: Workplace,
  { larderUrl, folder }: { readonly larderUrl: string; readonly folder: string },
): Launcher {
  const site = { kind: "front", narFolder: `${folder}/nar`, larderUrl } as const;
  return nginxLauncher(workplace, "nginx front", () => site);
}

/** The command of the task, so that its permissions and engine flags are measured. */
const SERVE_TASK = denoJson.tasks.serve.command;

/** The upstream of a measured cache. */
export interface Origin {
  readonly upstreamUrl: string;
  readonly publicKey: string;
}

export interface LarderParts extends Origin {
  /** Its column; default: "larder". */
  readonly name?: string;
  /** A compiled larder; default: the sources. */
  readonly executable: string | undefined;
  /** Runs the sources; default: the bench's own Deno. */
  readonly deno?: string;
  /** Further options, by their names without dashes. */
  readonly flags?: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
  /** The one core that it runs on; default: any. */
  readonly core?: number;
}

/** A larder with its defaults, but for the settings that one machine and one upstream need. */
export function larderLauncher(workplace: Workplace, parts: LarderParts): Launcher {
  const { name = LARDER, upstreamUrl, publicKey, executable, deno = Deno.execPath() } = parts;
  const words = executable === undefined
    ? [deno, ...SERVE_TASK.split(" ").slice(1)]
    : [Deno.realPathSync(executable), "serve"];
  const pinned = parts.core === undefined ? [] : ["taskset", "--cpu-list", String(parts.core)];
  const [command = "", ...before] = [...pinned, ...words];
  return {
    name,
    launch(folder) {
      const port = freePort();
      const flags = {
        "cache-storage-local": folder,
        "server-addr": `127.0.0.1:${port}`,
        "cache-upstream-url": upstreamUrl,
        "cache-upstream-public-key": publicKey,
        "cache-hostname": "larder-bench",
        // Known misses must stay known during the measurement.
        "cache-negative-ttl": "1h",
        ...parts.flags,
      };
      const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
      const env = Object.fromEntries(
        PASSED_ON.map((name) => [name, Deno.env.get(name) ?? ""]).filter(([, value]) => value),
      );
      return launchProcess(workplace, {
        name,
        port,
        logFile: `${folder}.log`,
        command,
        args: [...before, ...args],
        // No file may change its form within a measure. An older larder overlooks the variable.
        env: { ...env, CACHE_RECOMPRESS: "off", ...parts.environment },
      });
    },
  };
}

function nginxLauncher(
  workplace: Workplace,
  name: string,
  siteOf: (folder: string) => NginxSite,
): Launcher {
  return {
    name,
    launch(folder) {
      const port = freePort();
      const conf = `${folder}/nginx.conf`;
      Deno.writeTextFileSync(conf, nginxConf(folder, port, siteOf(folder)));
      const args = ["-p", folder, "-c", conf, "-e", "stderr"];
      const logFile = `${folder}.log`;
      return launchProcess(workplace, { name, port, logFile, command: "nginx", args });
    },
  };
}

/**
 * Another pull-through cache. `program` on PATH becomes the server. Its arguments are a folder for
 * its data, a port of 127.0.0.1, the upstream's URL and the upstream's public key.
 */
export function peerLauncher(
  workplace: Workplace,
  program: string,
  { upstreamUrl, publicKey }: Origin,
): Launcher {
  return {
    name: PEER,
    launch(folder) {
      const port = freePort();
      return launchProcess(workplace, {
        name: PEER,
        port,
        logFile: `${folder}.log`,
        command: program,
        args: [folder, String(port), upstreamUrl, publicKey],
      });
    },
  };
}
