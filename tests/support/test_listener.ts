import { statusAnswer } from "../../src/http/message/message.ts";
import {
  HttpServer,
  type HttpServerDeps,
  type HttpServerLimits,
} from "../../src/http/server/http_server.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

/** A server of ours on a port of 127.0.0.1; disposing of it waits for running requests. */
export class TestListener implements AsyncDisposable {
  readonly port: number;
  readonly server: HttpServer;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #accepting: Promise<void>;

  constructor(
    deps: Pick<HttpServerDeps, "handle"> & Partial<HttpServerDeps & HttpServerLimits>,
  ) {
    this.port = this.#listener.addr.port;
    const parts = {
      log: createLogger("error", { write() {} }),
      nowMs: Date.now,
      connectionsMax: 1_000,
      // All clients of a test have one address.
      perAddressMax: Infinity,
      refuse: ({ status }: { readonly status: number }) => statusAnswer(status, false),
      ...deps,
    };
    this.server = new HttpServer(parts, parts);
    this.#accepting = this.server.serve(this.#listener);
  }

  /** Without a slash at its end. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.server.shutdown();
    await this.#accepting;
  }
}
