import { createHash } from "node:crypto";
import { freePort } from "./free_port.ts";
import type { Otlp } from "./otlp.ts";
import { unlessFile } from "./program.ts";
import { tempFolder } from "./temp_folder.ts";
import type { OwnCertificate } from "./tls_front.ts";

const SIGNALS = ["traces", "metrics", "logs"] as const;

const PROGRAM = programPath();

/** Why tests with it cannot run here; empty when they can. */
export const COLLECTOR_UNAVAILABLE = unlessFile(
  PROGRAM,
  "the OpenTelemetry Collector is not built (scripts/otelcol; needs Go 1.23)",
);

/** The place of the program that `scripts/otelcol` builds of these sources. */
function programPath(): string {
  const hash = createHash("sha256");
  for (const name of ["go.mod", "go.sum", "main.go"]) {
    hash.update(Deno.readFileSync(new URL(`./otelcol/${name}`, import.meta.url)));
  }
  const cache = Deno.env.get("XDG_CACHE_HOME") || `${Deno.env.get("HOME")}/.cache`;
  return `${cache}/larder/otelcol-${hash.digest("hex").slice(0, 16)}`;
}

type CollectorTls = Pick<OwnCertificate, "caFile" | "keyFile">;

/** A real OpenTelemetry Collector: receives OTLP over gRPC, and writes it to files. */
export class Collector implements AsyncDisposable {
  readonly url: string;
  readonly #folder = tempFolder();
  readonly #child: Deno.ChildProcess;
  readonly #ready = Promise.withResolvers<void>();
  readonly #read: Promise<void>;

  private constructor(tls: CollectorTls | undefined) {
    const endpoint = `127.0.0.1:${freePort()}`;
    this.url = `${tls === undefined ? "http" : "https"}://${endpoint}`;
    const config = `${this.#folder.path}/config.json`;
    Deno.writeTextFileSync(config, configuration(endpoint, this.#folder.path, tls));
    this.#child = new Deno.Command(PROGRAM, {
      args: ["--config", config],
      stdout: "null",
      stderr: "piped",
    }).spawn();
    this.#read = this.#readLog();
  }

  /** Resolves when it listens; with `tls`, for https. */
  static async start(tls?: CollectorTls): Promise<Collector> {
    const collector = new Collector(tls);
    await collector.#ready.promise;
    return collector;
  }

  kill(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /** Ends it; only then are its files whole. */
  async stop(): Promise<void> {
    this.kill("SIGTERM");
    await this.#child.status;
  }

  /** The received OTLP requests of one signal. Call it after `stop`. */
  received(signal: typeof SIGNALS[number]): readonly Otlp[] {
    return Deno.readTextFileSync(`${this.#folder.path}/${signal}.json`).split("\n")
      .filter((line) => line !== "").map((line) => JSON.parse(line));
  }

  /** How much of the metrics that came is written already. */
  metricsBytes(): number {
    return Deno.statSync(`${this.#folder.path}/metrics.json`).size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.kill("SIGKILL");
    } catch (error) {
      // It has ended by itself.
      if (!(error instanceof TypeError || error instanceof Deno.errors.NotFound)) throw error;
    }
    await Promise.all([this.#child.status, this.#read]);
    this.#folder[Symbol.dispose]();
  }

  async #readLog(): Promise<void> {
    let log = "";
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      log += text;
      if (log.includes("Everything is ready")) this.#ready.resolve();
    }
    this.#ready.reject(new Error(`Cannot start collector: ${log}`));
  }
}

/** Its configuration is YAML, of which JSON is a part. */
function configuration(endpoint: string, folder: string, tls: CollectorTls | undefined): string {
  const grpc = {
    endpoint,
    ...(tls === undefined ? {} : { tls: { cert_file: tls.caFile, key_file: tls.keyFile } }),
  };
  const each = <Value>(what: (signal: string) => [string, Value]) =>
    Object.fromEntries(SIGNALS.map(what));
  return JSON.stringify({
    receivers: { otlp: { protocols: { grpc } } },
    exporters: each((signal) => [`file/${signal}`, { path: `${folder}/${signal}.json` }]),
    service: {
      telemetry: { metrics: { level: "none" } },
      pipelines: each((signal) => [
        signal,
        { receivers: ["otlp"], exporters: [`file/${signal}`] },
      ]),
    },
  });
}
