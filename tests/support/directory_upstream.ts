import { ExactServer, type Exchange } from "./exact_server.ts";
import { RequestLog } from "./request_log.ts";
import { textAnswer } from "./upstream_answers.ts";
import type { Answer } from "./wire_answer.ts";

const READ_BYTES = 256 * 1024;

/** Serves a folder, such as `nix copy --to file:///…` makes, on 127.0.0.1. */
export class DirectoryUpstream implements AsyncDisposable {
  readonly publicKey: string;
  readonly #folder: string;
  readonly #pauseMs: (path: string) => number;
  readonly #requests = new RequestLog("");
  readonly #server = new ExactServer((exchange) => this.#answer(exchange));

  /** `pauseMs`: how long it lets each request wait. Default: not at all. */
  constructor(folder: string, publicKey: string, pauseMs: (path: string) => number = () => 0) {
    this.#folder = folder;
    this.#pauseMs = pauseMs;
    this.publicKey = publicKey;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** How often each narinfo and each NAR was requested, whatever the method. */
  get timesAsked(): Readonly<Record<string, number>> {
    const times: Record<string, number> = {};
    for (const { path } of this.#requests.matching(/\.narinfo$|^\/nar\//)) {
      times[path] = (times[path] ?? 0) + 1;
    }
    return times;
  }

  /** The paths of all narinfos and NARs that it has. */
  paths(): readonly string[] {
    const below = (folder: string) =>
      [...Deno.readDirSync(this.#folder + folder)]
        .filter(({ isFile }) => isFile)
        .map(({ name }) => folder + name);
    return [...below("/").filter((path) => path.endsWith(".narinfo")), ...below("/nar/")];
  }

  /** Switched off: connections are refused, and those that are open break. */
  stop(): Promise<void> {
    return this.#server.stop();
  }

  /** Switched on again, at the same URL. */
  start(): Promise<void> {
    return this.#server.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }

  async #answer(exchange: Exchange): Promise<Answer> {
    this.#requests.add(exchange);
    const pauseMs = this.#pauseMs(exchange.path);
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    try {
      const { size, isFile } = await Deno.stat(this.#folder + exchange.path);
      if (isFile) return fileAnswer(this.#folder + exchange.path, size);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    return textAnswer(404, "404\n");
  }
}

function fileAnswer(path: string, size: number): Answer {
  const headers = new Headers({ "content-type": "application/octet-stream" });
  return { status: 200, headers, body: fileBody(path), framing: size };
}

/**
 * Keeps no file open between pieces: a client that leaves may never ask for the next one. It reads
 * in one turn, so that no read outlasts a test whose client has the last byte.
 */
async function* fileBody(path: string): AsyncGenerator<Uint8Array> {
  for (let position = 0;;) {
    const piece = pieceAt(path, position);
    if (piece === undefined) return;
    yield piece;
    position += piece.length;
  }
}

function pieceAt(path: string, position: number): Uint8Array | undefined {
  using file = Deno.openSync(path);
  file.seekSync(position, Deno.SeekMode.Start);
  const bytes = new Uint8Array(READ_BYTES);
  const length = file.readSync(bytes);
  return length === null ? undefined : bytes.subarray(0, length);
}
