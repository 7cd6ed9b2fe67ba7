import type { Bytes } from "../../src/base/bytes.ts";

/**
 * A body without an end: `pieceAt` gives one piece in each turn of the event loop. Its reader ends
 * it, with the timer of the next turn.
 */
export function endlessBody(pieceAt: (at: number) => Bytes): ReadableStream<Bytes> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let at = 0;
  return new ReadableStream({
    pull: (controller) =>
      new Promise((resolve) => {
        timer = setTimeout(() => {
          controller.enqueue(pieceAt(at++));
          resolve();
        }, 0);
      }),
    cancel: () => clearTimeout(timer),
  });
}
