import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { formatMs } from "../../base/format_units.ts";
import { PieceReader } from "../../base/piece_reader.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import { clock } from "../../runtime/current.ts";
import type { NarBody, NarBodySource } from "../../upstream/upstream.ts";
import {
  FetchError,
  type FetchFailure,
  fetchFailureOf,
  type FetchListener,
  type FetchOutcome,
  type NarFetch,
  type NarFetcher,
  type NarSink,
} from "./nar_fetcher.ts";

/** Opens the sink of one file. The sink calls the listener. */
export type OpenSink = (listener: FetchListener) => NarSink;

/** An upstream, or another member. */
export interface NarClient extends Pick<NarBodySource, "openNar"> {
  /** The longest silence within a body of this source. */
  readonly idleTimeoutMs?: number;
  /** True where the head of a response says that a larder is at work: its bytes may come later. */
  readonly isTakenByHead?: boolean;
}

export interface SinkFetcherDeps {
  /** Sources of NARs by the upstream's URL. */
  readonly narClients: Pick<ReadonlyMap<string, NarClient>, "get">;
  /** The longest silence within a body, unless the source has its own. */
  readonly idleTimeoutMs: number;
}

/** Fetches NAR files into sinks on this thread. */
export class SinkFetcher implements NarFetcher<OpenSink> {
  readonly #deps: SinkFetcherDeps;

  constructor(deps: SinkFetcherDeps) {
    this.#deps = deps;
  }

  begin(open: OpenSink, listener: FetchListener): NarFetch {
    const { narClients, idleTimeoutMs } = this.#deps;
    const fetch = new SinkFetch(() => open(listener));
    return {
      async from(source, taken = () => undefined, isFinal = false) {
        const upstream = narClients.get(source.upstream);
        if (upstream === undefined) return { type: "absent" };
        return await fetch.from({
          ...{ upstream, source, taken, isFinal },
          idleTimeoutMs: upstream.idleTimeoutMs ?? idleTimeoutMs,
        });
      },
      [Symbol.dispose]: () => void fetch[Symbol.asyncDispose](),
    };
  }
}

/** One request for a file to the upstream of `source`. */
export interface SourceRequest {
  readonly upstream: Pick<NarClient, "openNar" | "isTakenByHead">;
  readonly source: NarSource;
  readonly idleTimeoutMs: number;
  /** Called if this source is the first to answer. */
  readonly taken: () => void;
  /** True: no retries; default: false. */
  readonly isFinal?: boolean;
}

/**
 * One NAR file in flight, into one sink. Several requests may run at a time: the first source to
 * answer writes, the others end as "outrun".
 */
export class SinkFetch implements AsyncDisposable {
  readonly #open: () => NarSink;
  #sink: NarSink | undefined;
  readonly #requests = new Map<AbortController, Promise<FetchOutcome>>();
  /** Ends the source that has answered; `undefined` while there is none. */
  #taken: AbortController | undefined;
  #isOver = false;

  /** `open` is called once, for the first source. */
  constructor(open: () => NarSink) {
    this.#open = open;
  }

  /** Fetches the rest from `source`. Never rejects. */
  async from(request: SourceRequest): Promise<FetchOutcome> {
    if (this.#isOver) return { type: "failed", reason: "cancelled", detail: "it is over" };
    const abort = new AbortController();
    const running = this.#fetch(request, abort);
    this.#requests.set(abort, running);
    try {
      return await running;
    } finally {
      this.#requests.delete(abort);
      if (this.#taken === abort) this.#taken = undefined;
    }
  }

  /** Ends all requests, then closes the sink. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    for (const abort of this.#requests.keys()) abort.abort();
    await Promise.all(this.#requests.values());
    this.#sink?.[Symbol.dispose]();
    this.#sink = undefined;
  }

  async #fetch(
    { upstream, source, idleTimeoutMs, taken, isFinal = false }: SourceRequest,
    abort: AbortController,
  ): Promise<FetchOutcome> {
    let requests = 0;
    try {
      const outcome = await fetchNar({
        ...{ upstream, source, idleTimeoutMs },
        sink: this.#sink ??= this.#open(),
        request: { signal: abort.signal, isFinal, requested: () => void requests++ },
        take: () => this.#take(abort, taken),
      });
      return { ...outcome, requests };
    } catch (error) {
      return { type: "failed", reason: fetchFailureOf(error), detail: messageOf(error) };
    }
  }

  #take(abort: AbortController, taken: () => void): boolean {
    if (this.#taken !== undefined) return false;
    this.#taken = abort;
    for (const other of this.#requests.keys()) {
      if (other !== abort) other.abort(new FetchError("outrun", "another has answered first"));
    }
    taken();
    return true;
  }
}

/** The buffer of one read; the network delivers some 60 to 90 KiB at once. */
const READ_BYTES = 256 * 1024;

/** How long the complete file waits for the body's end, to see that no more follows. */
const END_WAIT_MS = 1_000;

interface FetchNarParts {
  readonly upstream: Pick<NarBodySource, "openNar"> & {
    /** True where the head of a response says that a larder is at work. Default: false. */
    readonly isTakenByHead?: boolean;
  };
  readonly source: NarSource;
  readonly sink: NarSink;
  /** The longest silence within the body. */
  readonly idleTimeoutMs: number;
  readonly request: FetchRequest;
  /** False where another source has answered: from then on that one writes the sink. */
  readonly take: () => boolean;
}

interface FetchRequest {
  readonly signal: AbortSignal;
  /** True: no retries. */
  readonly isFinal: boolean;
  /** Called before each request to the upstream. */
  readonly requested: () => void;
}

/**
 * Requests a NAR file, or the rest of it, from one source, and writes it to the sink. Compares
 * bytes that the sink already has. Never throws.
 */
export async function fetchNar(parts: FetchNarParts): Promise<FetchOutcome> {
  const { upstream, source, sink, request, idleTimeoutMs } = parts;
  const askedAtMs = clock.nowMs();
  try {
    // Once there are bytes, the attempts decide which source to retry, and when.
    const isFinal = request.isFinal || sink.received > 0;
    const order = { ...sink.resumeAt(source), ...request, isFinal };
    const answer = await upstream.openNar(source.location, order);
    if (answer === undefined) return { type: "absent" };
    const reader = new PieceReader(answer.body, { readBytes: READ_BYTES, reuses: sink.copies });
    try {
      check(sink, answer);
      // An upstream that sends only headers keeps none of the others from answering.
      if (!upstream.isTakenByHead) {
        const leftMs = idleTimeoutMs - (clock.nowMs() - askedAtMs);
        await unlessStalled(reader.ready(), Math.max(leftMs, idleTimeoutMs / 3));
      }
      request.signal.throwIfAborted();
      if (!parts.take()) throw new FetchError("outrun", "another upstream has answered first");
      sink.begin(source, answer);
    } catch (error) {
      await reader.cancel();
      throw error;
    }
    const hadMore = await receive(parts, { reader, offset: answer.offset });
    return { ...ended(sink, !answer.framed), ...(hadMore ? { surplus: true } : {}) };
  } catch (error) {
    const reason = fetchFailureOf(error);
    if (request.signal.aborted) return gaveUp(request.signal.reason);
    // The file is complete, so that an error at the body's end does not matter.
    if (UPSTREAM_REASONS.includes(reason) && isComplete(sink)) return ended(sink, false);
    return { type: "failed", reason, detail: messageOf(error), ...statusOf(error) };
  }
}

/** The status of a response without a usable body. */
function statusOf(error: unknown): { readonly status?: number } {
  const status = error instanceof Failure ? error.facts["status"] : undefined;
  return typeof status === "number" ? { status } : {};
}

/** Reasons that say nothing about the bytes of the sink. */
const UPSTREAM_REASONS: readonly FetchFailure[] = [
  "status",
  "upstream",
  "stalled",
  "timeout",
  "unreachable",
];

/** "outrun", or "cancelled". */
function gaveUp(why: unknown): FetchOutcome {
  const reason = why instanceof FetchError ? why.reason : "cancelled";
  return { type: "failed", reason, detail: messageOf(why) };
}

/** Throws when the response cannot be the file, or the rest of it. */
function check(sink: NarSink, { fileSize, offset }: NarBody): void {
  const { order, received } = sink;
  // Another size than that of the file that came so far says nothing about those bytes.
  const reason = received > 0 ? "differs" : "size";
  const known = order.fileSize ?? (received > 0 ? sink.fileSize : undefined);
  if (fileSize !== undefined && fileSize !== (known ?? fileSize)) {
    throw new FetchError(reason, `it announces ${fileSize} bytes, not ${known}`);
  }
  if (fileSize !== undefined && fileSize > order.fileSizeMax) {
    throw new FetchError(reason, `it announces ${fileSize} bytes, not up to ${order.fileSizeMax}`);
  }
  if (offset > received) {
    throw new FetchError("upstream", `it begins at byte ${offset}, not ${received}`);
  }
}

/** The result of `work`. Throws after `waitMs`. */
async function unlessStalled<Value>(work: Promise<Value>, waitMs: number): Promise<Value> {
  const result = await clock.within(work.then((value) => ({ value })), waitMs);
  if (result === undefined) {
    throw new FetchError("stalled", `nothing came for ${formatMs(waitMs)}`);
  }
  return result.value;
}

/** Resolves to true where the upstream sends more bytes than the file has. */
async function receive(
  { sink, idleTimeoutMs }: FetchNarParts,
  { reader, offset }: { readonly reader: PieceReader; readonly offset: number },
): Promise<boolean> {
  let position = offset;
  try {
    for (;;) {
      const waitMs = isComplete(sink) ? Math.min(END_WAIT_MS, idleTimeoutMs) : idleTimeoutMs;
      const piece = await unlessStalled(reader.read(), waitMs);
      if (piece === undefined) break;
      const bytes = piece.subarray(0, wantedEnd(sink) - position);
      const written = take(sink, bytes, position);
      if (written !== undefined) await written;
      position += bytes.length;
      if (bytes.length < piece.length) return true;
    }
  } finally {
    sink.pause();
    await reader.cancel();
  }
  if (position < (sink.fileSize ?? sink.received)) {
    throw new FetchError("upstream", `got ${position} of ${sink.fileSize ?? "more"} bytes`);
  }
  return false;
}

/** Compares bytes below `position` with the sink's; writes the new ones. */
function take(
  sink: NarSink,
  bytes: Bytes,
  position: number,
): Promise<void> | void {
  const { received } = sink;
  const known = bytes.subarray(0, received - position);
  if (known.length > 0 && !sink.has(known, position)) {
    throw new FetchError("differs", "it sends other bytes than those that are here");
  }
  const fresh = bytes.subarray(known.length);
  if (received + fresh.length > limitOf(sink)) {
    throw new FetchError("size", `it is over ${limitOf(sink)} bytes`);
  }
  if (fresh.length > 0) return sink.write(fresh);
}

/** Reading ends here: a hash shows whether the file is right, whatever follows. */
function wantedEnd({ fileSize = Infinity, order }: NarSink): number {
  return order.anySource ? fileSize : Infinity;
}

/** More bytes than this are an error. */
function limitOf({ fileSize, order }: NarSink): number {
  return fileSize ?? order.fileSizeMax;
}

function isComplete({ received, fileSize }: NarSink): boolean {
  return received > 0 && received === fileSize;
}

function ended({ received, digest }: NarSink, maybeShort: boolean): FetchOutcome {
  return { type: "end", fileSize: received, digest, maybeShort };
}
