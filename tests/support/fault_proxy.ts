import { listenOnSteadyPort, writeAll } from "./steady_port.ts";

export interface FaultProxyOptions {
  /** A port of 127.0.0.1 that every connection is forwarded to. */
  readonly targetPort: number;
  readonly cutAfterBytes?: number;
}

/** Stands between a client and a server and breaks the messages between them. */
export class FaultProxy implements AsyncDisposable {
  /** Each connection ends once it has carried that many bytes of answers, heads included. */
  cutAfterBytes: number | undefined;
  /** New connections are closed at once, so that the client sees a reset. */
  isRefusing = false;
  readonly #targetPort: number;
  readonly #listener = listenOnSteadyPort();
  readonly #links = new Set<Link>();
  #acceptedCount = 0;
  #running = Promise.withResolvers<void>();

  constructor({ targetPort, cutAfterBytes }: FaultProxyOptions) {
    this.#targetPort = targetPort;
    this.cutAfterBytes = cutAfterBytes;
    this.#running.resolve();
    this.#accept();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  /** Without a slash at its end. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Connections since the start, refused ones included. */
  get connectionCount(): number {
    return this.#acceptedCount;
  }

  get openCount(): number {
    return this.#links.size;
  }

  /** Nothing passes in either direction, and no connection ends, until `resume`. */
  pause(): void {
    this.#running = Promise.withResolvers();
  }

  resume(): void {
    this.#running.resolve();
  }

  /** Ends every open connection, in the middle of whatever it carries. */
  cutAll(): void {
    for (const link of this.#links) link.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.resume();
    this.cutAll();
    await Promise.all([...this.#links].map((link) => link.done));
  }

  async #accept(): Promise<void> {
    for await (const client of this.#listener) {
      this.#acceptedCount++;
      if (this.isRefusing) {
        client.close();
        continue;
      }
      const link = new Link(client, this.#targetPort, {
        running: () => this.#running.promise,
        answerBytesMax: () => this.cutAfterBytes ?? Infinity,
      });
      this.#links.add(link);
      link.done.then(() => this.#links.delete(link));
    }
  }
}

interface LinkRules {
  running(): Promise<void>;
  answerBytesMax(): number;
}

/** One client's connection and the one to the target that belongs to it. */
class Link {
  readonly done: Promise<void>;
  readonly #ends: Deno.Conn[];
  readonly #rules: LinkRules;
  #isClosed = false;

  constructor(client: Deno.TcpConn, targetPort: number, rules: LinkRules) {
    client.setNoDelay(true);
    this.#ends = [client];
    this.#rules = rules;
    this.done = this.#run(client, targetPort);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const end of this.#ends) end.close();
  }

  async #run(client: Deno.Conn, targetPort: number): Promise<void> {
    try {
      const target = await Deno.connect({ hostname: "127.0.0.1", port: targetPort });
      if (this.#isClosed) return target.close();
      target.setNoDelay(true);
      this.#ends.push(target);
      await Promise.all([this.#pump(client, target), this.#pumpAnswers(target, client)]);
    } catch {
      // Either end is gone or was closed here: so is the other one, then.
    }
    this.close();
  }

  async #pump(from: Deno.Conn, to: Deno.Conn): Promise<void> {
    const buffer = new Uint8Array(64 * 1024);
    for (;;) {
      const read = await from.read(buffer);
      await this.#rules.running();
      if (read === null) break;
      await writeAll(to, buffer.subarray(0, read));
    }
    this.close();
  }

  async #pumpAnswers(from: Deno.Conn, to: Deno.Conn): Promise<void> {
    const buffer = new Uint8Array(64 * 1024);
    for (let carriedBytes = 0;;) {
      const read = await from.read(buffer);
      await this.#rules.running();
      if (read === null) break;
      const allowedBytes = Math.max(0, this.#rules.answerBytesMax() - carriedBytes);
      await writeAll(to, buffer.subarray(0, Math.min(read, allowedBytes)));
      carriedBytes += read;
      if (read >= allowedBytes) break;
    }
    this.close();
  }
}
