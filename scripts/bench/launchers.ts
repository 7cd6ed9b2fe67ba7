import denoJson from "../../deno.json" with { type: "json" };
import { nginxConf, type NginxSite } from "./nginx_conf.ts";
import { freePort, type Launcher, launchProcess, type ServerName } from "./server.ts";
import type { Workplace } from "./workplace.ts";

/** The variables that servers inherit: no option of larder is among them. */
const PASSED_ON = ["PATH", "HOME", "TMPDIR", "DENO_DIR", "XDG_CACHE_HOME"];

/** nginx serving the files of `root`; the upstream of the other two, too. */
export function directoryLauncher(workplace: Workplace, root: string): Launcher {
  return nginxLauncher(workplace, "nginx directory", () => ({ kind: "directory", root }));
}

/** nginx as a caching proxy before `upstreamUrl`. */
export function proxyLauncher(workplace: Workplace, upstreamUrl: string): Launcher {
  return nginxLauncher(workplace, "nginx proxy_cache", (folder) => ({
    kind: "proxy",
    cacheFolder: `${folder}/cache`,
    upstreamUrl,
  }));
}

/** The command of the task, so that its permissions and engine flags are measured. */
const SERVE_TASK = denoJson.tasks.serve.command;

export interface LarderParts {
  readonly upstreamUrl: string;
  readonly publicKey: string;
  /** A compiled larder; default: the sources, on the bench's own Deno. */
  readonly executable: string | undefined;
  /** Further options, by their names without dashes. */
  readonly flags?: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
}

export function larderLauncher(workplace: Workplace, parts: LarderParts): Launcher {
  const { upstreamUrl, publicKey, executable } = parts;
  const [command, before] = executable === undefined
    ? [Deno.execPath(), SERVE_TASK.split(" ").slice(1)]
    : [Deno.realPathSync(executable), ["serve"]];
  return {
    name: "larder",
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
        "log-level": "warn",
        ...parts.flags,
      };
      const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
      const env = Object.fromEntries(
        PASSED_ON.map((name) => [name, Deno.env.get(name) ?? ""]).filter(([, value]) => value),
      );
      return launchProcess(workplace, {
        name: "larder",
        port,
        command,
        args: [...before, ...args],
        env: { ...env, ...parts.environment },
      });
    },
  };
}

function nginxLauncher(
  workplace: Workplace,
  name: ServerName,
  siteOf: (folder: string) => NginxSite,
): Launcher {
  return {
    name,
    launch(folder) {
      const port = freePort();
      const conf = `${folder}/nginx.conf`;
      Deno.writeTextFileSync(conf, nginxConf(folder, port, siteOf(folder)));
      const args = ["-p", folder, "-c", conf, "-e", "stderr"];
      return launchProcess(workplace, { name, port, command: "nginx", args });
    },
  };
}
