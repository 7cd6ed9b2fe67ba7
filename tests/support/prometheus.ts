import { eventually } from "./eventually.ts";
import { freePort } from "./free_port.ts";
import { tempFolder } from "./temp_folder.ts";

/** A real Prometheus that scrapes one server as the job `larder`. */
export class Prometheus implements AsyncDisposable {
  readonly #folder = tempFolder();
  readonly #url: string;
  readonly #child: Deno.ChildProcess;

  private constructor(target: string) {
    const port = freePort();
    this.#url = `http://127.0.0.1:${port}`;
    const config = `${this.#folder.path}/prometheus.yml`;
    Deno.writeTextFileSync(config, configuration(target));
    this.#child = new Deno.Command("prometheus", {
      args: [
        `--config.file=${config}`,
        `--storage.tsdb.path=${this.#folder.path}/data`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--log.level=error",
      ],
      stdout: "null",
      stderr: "null",
    }).spawn();
  }

  /** `target` is host and port. Resolves when it has scraped it. */
  static async start(target: string): Promise<Prometheus> {
    const prometheus = new Prometheus(target);
    await eventually("Prometheus has scraped", async () => {
      try {
        return await prometheus.query('up{job="larder"} == 1') !== undefined;
      } catch {
        return false;
      }
    });
    return prometheus;
  }

  /** The value of an expression's first series; `undefined` when it has none. */
  async query(expression: string): Promise<number | undefined> {
    const body = new URLSearchParams({ query: expression });
    const answer = await fetch(`${this.#url}/api/v1/query`, { method: "POST", body });
    const { status, data, error } = await answer.json();
    if (status !== "success") throw new Error(`Cannot query ${expression}: ${error}`);
    const value = data.result[0]?.value[1];
    return value === undefined ? undefined : Number(value);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
    this.#folder[Symbol.dispose]();
  }
}

function configuration(target: string): string {
  return `
global: { scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s }
rule_files: ["${new URL("../../docs/prometheus/alerts.yml", import.meta.url).pathname}"]
scrape_configs:
  - job_name: larder
    static_configs: [{ targets: ["${target}"] }]
`;
}
