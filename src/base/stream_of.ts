/** Has pieces one after another. */
export interface PieceSource<Piece> {
  /** Waits for the next piece; `undefined` is the end. One call at a time. */
  next(): Promise<Piece | undefined>;
  /** The reader wants no more, even while `next` waits. Not after the end or an error. */
  cancel?(reason: unknown): void | Promise<void>;
}

/** A stream of a source's pieces, which it asks for as the reader takes them. */
export function streamFrom<Piece>(source: PieceSource<Piece>): ReadableStream<Piece> {
  return new ReadableStream({
    async pull(controller) {
      const piece = await source.next();
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
    cancel: (reason) => source.cancel?.(reason),
  }, { highWaterMark: 0 });
}

/**
 * A stream of a generator's pieces. It calls `release` once: at the end, at an error, or when the
 * reader cancels, even before the first piece.
 */
export function streamOf<Piece>(
  pieces: AsyncGenerator<Piece, void>,
  release: () => void = () => undefined,
): ReadableStream<Piece> {
  let isOver = false;
  const end = () => {
    if (!isOver) release();
    isOver = true;
  };
  return streamFrom<Piece>({
    async next() {
      try {
        const { value, done } = await pieces.next();
        if (!done) return value;
        end();
      } catch (error) {
        end();
        throw error;
      }
    },
    async cancel() {
      end();
      await pieces.return().catch(() => undefined);
    },
  });
}
