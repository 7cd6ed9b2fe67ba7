/** Accepts connections on 127.0.0.1, and never reads from them: a receiver that is frozen. */
export class MuteReceiver implements AsyncDisposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #connections: Deno.Conn[] = [];
  readonly #accepting = this.#accept();

  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#accepting;
    for (const connection of this.#connections) connection.close();
  }

  async #accept(): Promise<void> {
    for await (const connection of this.#listener) this.#connections.push(connection);
  }
}
