import { Inbox } from "./inbox.ts";
import { listenOnSteadyPort, writeAll } from "./steady_port.ts";

/** A forward proxy as HTTP_PROXY names it, that takes every request to one port of 127.0.0.1. */
export class HttpProxy implements AsyncDisposable {
  /** The request lines, as they came: `GET http://host/path HTTP/1.1`. */
  readonly requestLines: string[] = [];
  readonly #listener = listenOnSteadyPort();
  readonly #targetPort: number;
  readonly #links = new Set<Promise<void>>();
  readonly #ends = new Set<Deno.Conn>();

  constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#accept();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    // An upstream may keep a connection whose client has left.
    for (const end of this.#ends) close(end);
    await Promise.all(this.#links);
  }

  async #accept(): Promise<void> {
    for await (const client of this.#listener) {
      const link = this.#forward(client).finally(() => this.#links.delete(link));
      this.#links.add(link);
    }
  }

  /** One request a connection. */
  async #forward(client: Deno.Conn): Promise<void> {
    const inbox = new Inbox(client, { readsAhead: false });
    const target = await Deno.connect({ hostname: "127.0.0.1", port: this.#targetPort });
    const ends = [client, target];
    for (const end of ends) this.#ends.add(end);
    try {
      const [line = "", ...headers] = (await inbox.head() ?? "").split("\r\n");
      this.requestLines.push(line);
      const [method, url, version] = line.split(" ");
      const path = (url ?? "").replace(/^http:\/\/[^/]+/, "");
      const head = [`${method} ${path} ${version}`, "connection: close", ...headers].join("\r\n");
      await writeAll(target, new TextEncoder().encode(head));
      for await (const bytes of target.readable) await writeAll(client, bytes);
    } catch {
      // Either side has left.
    } finally {
      for (const end of ends) {
        this.#ends.delete(end);
        close(end);
      }
    }
  }
}

function close(end: Deno.Conn): void {
  try {
    end.close();
  } catch {
    // Closed by its stream.
  }
}
