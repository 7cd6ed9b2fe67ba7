import { eventually } from "./eventually.ts";
import { freePort } from "./free_port.ts";
import { tempFolder } from "./temp_folder.ts";

export interface PrometheusOptions {
  /** True: its alerts fire as soon as their expression holds. Default: as the file says. */
  readonly firesAtOnce?: boolean;
}

/** A real Prometheus that scrapes servers as the job `larder`. */
export class Prometheus implements AsyncDisposable {
  readonly #folder = tempFolder();
  readonly #url: string;
  readonly #child: Deno.ChildProcess;

  private constructor(targets: readonly string[], { firesAtOnce = false }: PrometheusOptions) {
    const port = freePort();
    this.#url = `http://127.0.0.1:${port}`;
    const config = `${this.#folder.path}/prometheus.yml`;
    const rules = `${this.#folder.path}/alerts.yml`;
    const given = Deno.readTextFileSync(ALERTS);
    Deno.writeTextFileSync(rules, firesAtOnce ? given.replaceAll(/^ +for: .*\n/gm, "") : given);
    Deno.writeTextFileSync(config, configuration(targets, rules));
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

  /** Each of `targets` is host and port. Resolves when it has scraped all. */
  static async start(
    targets: readonly string[],
    options: PrometheusOptions = {},
  ): Promise<Prometheus> {
    const prometheus = new Prometheus(targets, options);
    await eventually("Prometheus has scraped", async () => {
      try {
        return await prometheus.query('sum(up{job="larder"})') === targets.length;
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

const ALERTS = new URL("../../docs/prometheus/alerts.yml", import.meta.url);

function configuration(targets: readonly string[], rules: string): string {
  return `
global: { scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s }
rule_files: ["${rules}"]
scrape_configs:
  - job_name: larder
    static_configs: [{ targets: ${JSON.stringify(targets)} }]
`;
}
