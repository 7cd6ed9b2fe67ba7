import { eventually } from "./eventually.ts";
import { freePort } from "./free_port.ts";
import { programMissing } from "./program.ts";

/** Why no Redis can run here; empty when one can. */
export const redisMissing = programMissing("redis-server");

/** A real Redis on a port of 127.0.0.1 that keeps nothing on disk. */
export class RedisServer implements AsyncDisposable {
  readonly port = freePort();
  #child: Deno.ChildProcess | undefined;

  static async open(): Promise<RedisServer> {
    const server = new RedisServer();
    await server.start();
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const args = [
      "--port",
      `${this.port}`,
      "--bind",
      "127.0.0.1",
      "--save",
      "",
      "--databases",
      "4",
    ];
    this.#child = new Deno.Command("redis-server", { args, stdout: "null", stderr: "null" })
      .spawn();
    await eventually("redis listens", () => this.#ping());
  }

  /** Its process stands still: connections stay open, and nothing answers. */
  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  wake(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Resolves when it is dead. All locks are lost. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    child?.kill("SIGKILL");
    await child?.status;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }

  async #ping(): Promise<boolean> {
    try {
      using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.port });
      await connection.write(new TextEncoder().encode("PING\r\n"));
      return await connection.read(new Uint8Array(7)) === 7;
    } catch {
      return false;
    }
  }
}
