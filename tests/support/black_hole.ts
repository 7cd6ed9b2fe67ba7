import { listenAgain } from "./steady_port.ts";

/** A dial within 127.0.0.1 that takes longer than this is not answered at all. */
const DIAL_MS = 250;

/**
 * A listener that accepts no connection and whose queue is full. The system neither takes nor
 * refuses a dial to it, as with a host whose packets vanish.
 */
export class BlackHole implements Disposable {
  readonly #listener: Deno.TcpListener;
  readonly #queued: Deno.TcpConn[] = [];

  private constructor(listener: Deno.TcpListener) {
    this.#listener = listener;
  }

  /** Port 0: any that is free. */
  static async open(port = 0): Promise<BlackHole> {
    const hole = new BlackHole(await listenAgain(port, 1));
    while (await hole.#takesOne());
    return hole;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}`;
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    for (const connection of this.#queued) connection.close();
  }

  async #takesOne(): Promise<boolean> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), DIAL_MS);
    const { port } = this.#listener.addr;
    try {
      const options = { hostname: "127.0.0.1", port, signal: late.signal };
      this.#queued.push(await Deno.connect(options));
      return true;
    } catch {
      return false;
    } finally {
      clearTimeout(timer);
    }
  }
}
