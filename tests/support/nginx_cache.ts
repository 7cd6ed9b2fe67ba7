import { nginxConf } from "../../scripts/bench/nginx_conf.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./free_port.ts";
import { tempFolder } from "./temp_folder.ts";

/** A real nginx with a `proxy_cache` in front of a binary cache. */
export class NginxCache implements AsyncDisposable {
  readonly port = freePort();
  readonly #folder = tempFolder();
  /** The folder of `proxy_cache_path`. */
  readonly cacheFolder = `${this.#folder.path}/cache`;
  readonly #child: Deno.ChildProcess;

  private constructor(upstreamUrl: string) {
    const { path } = this.#folder;
    const { cacheFolder } = this;
    const conf = nginxConf(path, this.port, { kind: "proxy", cacheFolder, upstreamUrl });
    Deno.writeTextFileSync(`${path}/nginx.conf`, conf);
    const args = ["-p", path, "-e", "stderr", "-c", `${path}/nginx.conf`];
    this.#child = new Deno.Command("nginx", { args, stdout: "null", stderr: "null" }).spawn();
  }

  static async open(upstreamUrl: string): Promise<NginxCache> {
    const nginx = new NginxCache(upstreamUrl);
    await eventually("nginx listens", async () => {
      try {
        (await Deno.connect({ hostname: "127.0.0.1", port: nginx.port })).close();
        return true;
      } catch {
        return false;
      }
    });
    return nginx;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#child.status;
    this.#folder[Symbol.dispose]();
  }
}
