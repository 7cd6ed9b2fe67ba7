import { eventually } from "./eventually.ts";
import { freePort } from "./free_port.ts";
import { programsMissing } from "./program.ts";
import type { OwnCertificate } from "./tls_front.ts";

/** Why no Redis can run here; empty when one can. */
export const redisMissing = programsMissing("redis-server", "redis-cli");

export interface RedisServerOptions {
  /** Further words of its command line. */
  readonly words?: readonly string[];
  /** It speaks TLS alone, with this certificate. */
  readonly certificate?: OwnCertificate;
  /** It is a sentinel with this configuration, which it will change. */
  readonly sentinelFile?: string;
}

/** A real Redis on a port of 127.0.0.1 that keeps nothing on disk. */
export class RedisServer implements AsyncDisposable {
  readonly port = freePort();
  readonly #options: RedisServerOptions;
  #child: Deno.ChildProcess | undefined;

  private constructor(options: RedisServerOptions) {
    this.#options = options;
    // A program that ends early leaves no server behind.
    globalThis.addEventListener("unload", () => this.#child?.kill("SIGKILL"));
  }

  static async open(options: RedisServerOptions = {}): Promise<RedisServer> {
    const server = new RedisServer(options);
    await server.start();
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const { words = [], certificate, sentinelFile } = this.#options;
    const isSentinel = sentinelFile !== undefined;
    const kind = isSentinel ? [sentinelFile, "--sentinel"] : [];
    const data = isSentinel ? [] : ["--save", "", "--databases", "4"];
    const place = [...portWords(this.port, certificate), "--bind", "127.0.0.1"];
    const args = [...kind, ...place, ...data, ...words];
    this.#child = new Deno.Command("redis-server", { args, stdout: "null", stderr: "null" })
      .spawn();
    await eventually("redis listens", () => this.#listens());
  }

  /** The answer to a command, as redis-cli prints it. */
  ask(...words: readonly string[]): string {
    const { certificate } = this.#options;
    const tls = certificate === undefined ? [] : ["--tls", "--cacert", certificate.caFile];
    const args = ["-p", `${this.port}`, ...tls, ...words];
    return new TextDecoder().decode(new Deno.Command("redis-cli", { args }).outputSync().stdout);
  }

  /** Its process is paused: connections stay open, and nothing answers. */
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

  async #listens(): Promise<boolean> {
    try {
      using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.port });
      if (this.#options.certificate !== undefined) return true;
      await connection.write(new TextEncoder().encode("PING\r\n"));
      return await connection.read(new Uint8Array(7)) === 7;
    } catch {
      return false;
    }
  }
}

function portWords(port: number, certificate: OwnCertificate | undefined): readonly string[] {
  if (certificate === undefined) return ["--port", `${port}`];
  const { caFile, keyFile } = certificate;
  return [
    ...["--port", "0", "--tls-port", `${port}`, "--tls-auth-clients", "no"],
    ...["--tls-replication", "yes"],
    ...["--tls-cert-file", caFile, "--tls-key-file", keyFile, "--tls-ca-cert-file", caFile],
  ];
}
