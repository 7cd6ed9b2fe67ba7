import { type LarderProcess, startLarder } from "../../tests/support/larder_process.ts";
import { tempFolder } from "../../tests/support/temp_folder.ts";
import type { World } from "./world.ts";

/** A larder that can be killed and restarted over one folder. */
export class Server implements AsyncDisposable {
  readonly #folder = tempFolder();
  readonly #flags: Readonly<Record<string, string | readonly string[]>>;
  #larder: LarderProcess | undefined;

  constructor({ upstreams, liar }: World, limitBytes: number) {
    this.#flags = {
      "cache-storage-local": this.#folder.path,
      "cache-upstream-url": [liar.upstream, ...upstreams].map(({ url }) => url),
      "cache-upstream-public-key": upstreams.map(({ publicKey }) => publicKey),
      "cache-max-size": String(limitBytes),
      "cache-allow-delete-verb": "true",
      "cache-negative-ttl": "1s",
      "cache-upstream-dialer-timeout": "1s",
      "cache-upstream-response-header-timeout": "1s",
      "cache-upstream-body-idle-timeout": "2s",
    };
  }

  get storage(): string {
    return this.#folder.path;
  }

  /** `undefined` while it starts. */
  get larder(): LarderProcess | undefined {
    return this.#larder;
  }

  async start(): Promise<void> {
    this.#larder = await startLarder(this.#flags);
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Stops it, and resolves with its status. */
  async stop(): Promise<Deno.CommandStatus> {
    return await this.#end("SIGTERM");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#larder !== undefined) await this.kill();
    this.#folder[Symbol.dispose]();
  }

  async #end(signal: Deno.Signal): Promise<Deno.CommandStatus> {
    const larder = this.#larder;
    if (larder === undefined) throw new Error("Cannot end larder: it does not run");
    this.#larder = undefined;
    larder.kill(signal);
    return await larder.ended;
  }
}
