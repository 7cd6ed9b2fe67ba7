import { tempFolder } from "./temp_folder.ts";

const CACHE = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`;
const PYTHON = `${CACHE}/larder/otlp-receiver-1/bin/python3`;
const SCRIPT = new URL("./otlp_receiver.py", import.meta.url).pathname;

/** Why tests with it cannot run here; empty when they can. */
export const OTLP_RECEIVER_UNAVAILABLE = missing();

function missing(): string {
  try {
    Deno.statSync(PYTHON);
    return "";
  } catch {
    return "the OTLP receiver is not installed (scripts/otlp_receiver)";
  }
}

// deno-lint-ignore no-explicit-any
export type Otlp = any;

/** A gRPC receiver of another make, which writes what it receives to files. */
export class OtlpReceiver implements AsyncDisposable {
  readonly #folder = tempFolder();
  readonly #child: Deno.ChildProcess;
  #port = 0;

  private constructor() {
    this.#child = new Deno.Command(PYTHON, {
      args: [SCRIPT, this.#folder.path],
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
  }

  /** Resolves when it listens. */
  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    const reader = receiver.#child.stdout.getReader();
    const { value } = await reader.read();
    reader.releaseLock();
    receiver.#port = Number(new TextDecoder().decode(value));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  kill(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  /** What has come of one signal, one OTLP request each. */
  received(signal: "traces" | "metrics" | "logs"): readonly Otlp[] {
    try {
      return Deno.readTextFileSync(`${this.#folder.path}/${signal}.json`).split("\n")
        .filter((line) => line !== "").map((line) => JSON.parse(line));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return [];
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill("SIGKILL");
    await this.#child.stdout.cancel();
    await this.#child.status;
    this.#folder[Symbol.dispose]();
  }
}
