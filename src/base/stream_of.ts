/**
 * A stream of what a generator yields, made as the reader takes it. `over` is called once: at the
 * end, at an error, and when the reader leaves, also before the generator has begun.
 */
export function streamOf<Piece>(
  pieces: AsyncGenerator<Piece>,
  over: () => void = () => undefined,
): ReadableStream<Piece> {
  let isOver = false;
  const end = () => {
    if (!isOver) over();
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
