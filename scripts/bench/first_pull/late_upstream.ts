import type { Bytes } from "../../../src/base/bytes.ts";

/** A binary cache in memory whose answers come late, as over a long line. */
export class LateUpstream implements AsyncDisposable {
  /** Delay before each answer. */
  latencyMs = 0;
  readonly #files: ReadonlyMap<string, Bytes>;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #narPaths: string[] = [];

  constructor(files: ReadonlyMap<string, Bytes>) {
    this.#files = files;
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => undefined },
      (request) => this.#answer(request),
    );
  }

  /** The upstream's URL, without a slash at its end. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** The path of each request for a NAR since the last call. */
  takeNarPaths(): readonly string[] {
    const paths = this.#narPaths;
    this.#narPaths = [];
    return paths;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/nar/")) this.#narPaths.push(pathname);
    await new Promise((resolve) => setTimeout(resolve, this.latencyMs));
    const file = this.#files.get(pathname);
    if (file === undefined) return new Response("not found\n", { status: 404 });
    const headers = { "content-length": String(file.length) };
    return new Response(request.method === "HEAD" ? null : file, { headers });
  }
}
