/**
 * A stream of a generator's pieces, made as the reader takes them. It calls `release` once: at the
 * end, at an error, or when the reader cancels, even before the first piece.
 */
export function streamOf<Piece>(
  pieces: AsyncGenerator<Piece>,
  release: () => void = () => undefined,
): ReadableStream<Piece> {
  let isOver = false;
  const end = () => {
    if (!isOver) release();
    isOver = true;
  };
  return new ReadableStream({
    async pull(controller) {
      try {
        const { value, done } = await pieces.next();
        if (!done) return controller.enqueue(value);
        end();
        controller.close();
      } catch (error) {
        end();
        throw error;
      }
    },
    async cancel() {
      end();
      await pieces.return(undefined).catch(() => undefined);
    },
  }, { highWaterMark: 0 });
}
