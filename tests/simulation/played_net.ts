import { EitherSignal } from "../../src/base/either_signal.ts";
import type { HttpClient, Net } from "../../src/runtime/net.ts";
import { clock } from "../../src/runtime/current.ts";
import { asOwner, type Owner } from "./virtual_clock.ts";

/** A request as a host gets it. */
export interface PlayedRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body?: ReadableStream<Uint8Array>;
  /** Fires when the sender has left. */
  readonly signal: AbortSignal;
}

/** What a host sends, and how. */
export interface PlayedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | ReadableStream<Uint8Array>;
  /** Time until the head leaves; `Infinity`: it never does, and the connection stays. */
  readonly delayMs?: number;
  /** Bytes a second; default: the whole body at once. */
  readonly rate?: number;
  /** The body breaks behind so many bytes. */
  readonly cutAt?: number;
  /** The body stops behind so many bytes, and the connection stays. */
  readonly stallAt?: number;
  /** The body ends behind so many bytes, as if it were whole. */
  readonly endAt?: number;
}

/** Somebody who takes requests. "refused": nobody listens; "silent": packets are lost. */
export interface PlayedHost {
  readonly owner?: Owner | undefined;
  /** Fires when its process ends: its connections break. */
  readonly died?: AbortSignal;
  readonly state: "up" | "refused" | "silent";
  handle(request: PlayedRequest): Promise<PlayedAnswer>;
}

const PIECE_BYTES = 16 * 1024;
const PIECE_MS = 20;

/** The network between all processes of a world. */
export class PlayedNetwork {
  readonly hosts = new Map<string, PlayedHost>();
  readonly #delayMs: () => number;
  readonly #cut = new Set<string>();
  readonly #open = new Set<string>();
  #count = 0;

  /** `delayMs`: the time of each request on its way. */
  constructor(delayMs: () => number) {
    this.#delayMs = delayMs;
  }

  /** Exchanges that are not over. */
  get open(): readonly string[] {
    return [...this.#open];
  }

  /** Packets between both are lost from now on, or arrive again. */
  separate(one: string, other: string, isCut: boolean): void {
    const key = [one, other].sort().join();
    if (isCut) this.#cut.add(key);
    else this.#cut.delete(key);
  }

  joinAll(): void {
    this.#cut.clear();
  }

  /** The network as one process sees it. Its requests end with it. */
  of(name: string, died: AbortSignal): Net {
    return {
      client: (): HttpClient => ({
        fetch: (url, { method, headers, signal }) =>
          this.send(name, {
            method,
            url: new URL(url),
            headers: new Headers(headers),
            signal: new EitherSignal(signal, died).signal,
          }),
        dial: async ({ hostname }, signal) => {
          const host = this.#reach(name, hostname);
          if (host === undefined) return (await pauseOrThrow(1, signal).catch(() => {}), false);
          if (host !== "silent") return (await pauseOrThrow(1, signal).catch(() => {}), true);
          await never(signal).catch(() => undefined);
          return false;
        },
        addresses: async () => ["203.0.113.1"],
        [Symbol.dispose]() {},
      }),
    };
  }

  /** Sends one request. Rejects where no response comes, and with the signal's reason. */
  async send(from: string, request: PlayedRequest): Promise<Response> {
    const { url } = request;
    const died = this.hosts.get(url.hostname)?.died;
    const signal = died === undefined
      ? request.signal
      : new EitherSignal(request.signal, died).signal;
    const exchange = `${++this.#count}: ${request.method} ${url} from ${from}`;
    this.#open.add(exchange);
    const over = () => void this.#open.delete(exchange);
    try {
      await pauseOrThrow(this.#delayMs(), signal);
      const host = this.#reach(from, url.hostname);
      if (host === undefined) throw new TypeError("error sending request: connection refused");
      if (host === "silent") return await never(signal);
      const answering = asOwner(host.owner, () => host.handle({ ...request, signal }));
      // Nobody reads the answer to a client that has left meanwhile.
      answering.then(({ body }) => signal.aborted && leave(body), () => undefined);
      const answer = await orAborted(answering, signal);
      try {
        if (answer.delayMs === Infinity) await never(signal);
        await pauseOrThrow(answer.delayMs ?? 0, signal);
        if (this.#reach(from, url.hostname) === "silent") await never(signal);
      } catch (error) {
        leave(answer.body);
        throw error;
      }
      return this.#response({ ...request, signal }, answer, over);
    } catch (error) {
      over();
      throw error;
    }
  }

  #reach(from: string, to: string): PlayedHost | "silent" | undefined {
    if (this.#cut.has([from, to].sort().join())) return "silent";
    const host = this.hosts.get(to);
    if (host === undefined || host.state === "refused") return undefined;
    return host.state === "silent" ? "silent" : host;
  }

  #response({ method, signal }: PlayedRequest, answer: PlayedAnswer, over: () => void): Response {
    const { status, headers = {}, body } = answer;
    const init = { status, headers: { ...headers } };
    const hasNone = method === "HEAD" || status === 204 || status === 304 || body === undefined;
    if (hasNone) {
      over();
      return new Response(null, init);
    }
    return new Response(bodyOf(body, answer, { signal, over }), init);
  }
}

function leave(body: PlayedAnswer["body"]): void {
  if (body instanceof ReadableStream) body.cancel().catch(() => undefined);
}

interface BodyParts {
  readonly signal: AbortSignal;
  readonly over: () => void;
}

/** The bytes in pieces, at the sender's rate, until a cut or a stall. */
function bodyOf(
  body: Uint8Array | ReadableStream<Uint8Array>,
  { rate = Infinity, cutAt = Infinity, stallAt = Infinity, endAt = Infinity }: PlayedAnswer,
  { signal, over }: BodyParts,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = (body instanceof ReadableStream ? body : ReadableStream.from([body])).getReader();
  let sent = 0;
  let rest = new Uint8Array(0);
  const end = (controller: ReadableByteStreamController) => {
    over();
    reader.cancel().catch(() => undefined);
    controller.close();
    controller.byobRequest?.respond(0);
  };
  return new ReadableStream({
    type: "bytes",
    start(controller) {
      const end = () => {
        over();
        controller.error(signal.reason);
        reader.cancel(signal.reason).catch(() => undefined);
      };
      if (signal.aborted) end();
      else signal.addEventListener("abort", end, { once: true });
    },
    async pull(controller) {
      try {
        signal.throwIfAborted();
        if (rest.length === 0) {
          const { value, done } = await orAborted(reader.read(), signal);
          if (done) return end(controller);
          rest = new Uint8Array(value);
        }
        if (sent >= endAt) return end(controller);
        const room = Math.min(cutAt, stallAt, endAt) - sent;
        if (room <= 0 && cutAt <= stallAt) throw new TypeError("error reading a body: reset");
        if (room <= 0) return await never(signal);
        const bytes = Math.min(PIECE_BYTES, room, rest.length, Math.ceil(rate * PIECE_MS / 1_000));
        if (rate < Infinity) await pauseOrThrow(1_000 * bytes / rate, signal);
        sent += bytes;
        const piece = rest.slice(0, bytes);
        rest = rest.subarray(bytes);
        controller.enqueue(piece);
      } catch (error) {
        over();
        reader.cancel(error).catch(() => undefined);
        // Whatever broke there, the reader sees a connection that broke.
        const message = `error reading a body: ${error instanceof Error ? error.message : error}`;
        controller.error(signal.aborted ? signal.reason : new TypeError(message));
      }
    },
    // As of a socket: its other end learns of it later.
    cancel() {
      over();
      reader.cancel().catch(() => undefined);
    },
  });
}

async function pauseOrThrow(ms: number, signal: AbortSignal): Promise<void> {
  await clock.pause(ms, signal);
  signal.throwIfAborted();
}

/** Rejects once the signal fires. */
function never(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

async function orAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  work.catch(() => undefined);
  return await Promise.race([work, never(signal)]);
}
