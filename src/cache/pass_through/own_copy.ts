import { FetchError } from "../fetch/nar_fetcher.ts";
import type { NarClient } from "../fetch/sink_fetcher.ts";
import type { NarAnswer } from "../nar/nar_answer.ts";
import type { NarBody, NarRequest } from "../../upstream/upstream.ts";

/**
 * How long a client waits until the copy has more than it has. Then an upstream sends the rest to
 * it alone. At 50 MB/s the copy reaches 250 MB meanwhile.
 */
const CATCH_UP_MAX_MS = 5_000;

/** `undefined`: the copy is another member's to make, or the signal has fired. */
export type OpenOwnCopy = (signal: AbortSignal) => Promise<NarAnswer | undefined>;

/**
 * This member's own copy of a NAR file, as a source of it: the stored file, or a download. All its
 * clients share that one. It follows another member that stops sending, or is late.
 */
export class OwnCopy implements NarClient {
  readonly idleTimeoutMs = CATCH_UP_MAX_MS;
  readonly isTakenByHead = true;
  readonly #open: OpenOwnCopy;

  constructor(open: OpenOwnCopy) {
    this.#open = open;
  }

  async openNar(_location: string, { offset, signal, requested }: NarRequest): Promise<NarBody> {
    requested?.();
    const answer = await this.#open(signal);
    // "outrun" is no failure: larder asks the next source, and may ask this one again.
    if (answer === undefined) throw new FetchError("outrun", "another source is nearer");
    if (signal.aborted) await answer[Symbol.asyncDispose]();
    signal.throwIfAborted();
    const { fileSize } = answer;
    const pieces = await answer.read(offset);
    return {
      ...(fileSize === undefined ? {} : { fileSize }),
      offset,
      body: bodyOf(pieces.getReader(), () => answer.release?.(true), signal),
      framed: true,
    };
  }
}

/**
 * A stream of bytes, until the signal fires. It copies each piece, because a stored file's may be
 * in shared memory. `release` is called once, at the end.
 */
function bodyOf(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  release: () => void,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    release();
    // It may wait for a piece that is long in coming.
    reader.cancel().catch(() => undefined);
  };
  return new ReadableStream({
    type: "bytes",
    start(controller) {
      const abort = () => {
        if (!isOver) controller.error(signal.reason);
        end();
      };
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    },
    async pull(controller) {
      const piece = await reader.read().catch((error) => {
        end();
        throw error;
      });
      if (isOver) return;
      if (!piece.done) return controller.enqueue(piece.value.slice());
      end();
      controller.close();
      // A reader with a buffer of its own gets it back.
      controller.byobRequest?.respond(0);
    },
    cancel: end,
  });
}
