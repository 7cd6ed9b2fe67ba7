import type { NarSource } from "../../metadata/metadata_store.ts";

/** A source that was asked. */
export interface AskedSource {
  readonly source: NarSource;
  /** True as soon as it has answered with what is wanted; false when it will not. Never rejects. */
  readonly answered: Promise<boolean>;
  /** Another one was quicker. */
  cancel(): void;
}

export interface SourceRace<Asked extends AskedSource> {
  /** The source to ask next; `undefined`: there is none. */
  readonly next: () => Promise<NarSource | undefined>;
  readonly ask: (source: NarSource) => Asked;
  /** Told of each source that was not waited for to the end. */
  readonly putBack: (source: NarSource) => void;
  /** So long a source is waited for alone. */
  readonly hedgeAfterMs: number;
}

/**
 * Asks one source after the other: the next when the last one has failed, or is late, and is still
 * waited for. Resolves to the first that answers; `undefined`: none did.
 */
export function firstToAnswer<Asked extends AskedSource>(
  { next, ask, putBack, hedgeAfterMs }: SourceRace<Asked>,
): Promise<Asked | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Asked | undefined>();
  const waiting = new Set<Asked>();
  let [isOver, isFinding, hasMore] = [false, false, true];
  let timer: ReturnType<typeof setTimeout> | undefined;

  function finish(winner?: Asked): void {
    isOver = true;
    clearTimeout(timer);
    if (winner !== undefined) waiting.delete(winner);
    for (const loser of waiting) {
      loser.cancel();
      putBack(loser.source);
    }
    resolve(winner);
  }

  function fail(error: unknown): void {
    reject(error);
    finish();
  }

  async function askNext(): Promise<void> {
    clearTimeout(timer);
    if (isFinding || isOver) return;
    isFinding = true;
    const source = hasMore ? await next() : undefined;
    isFinding = false;
    if (source === undefined) {
      hasMore = false;
      if (waiting.size === 0 && !isOver) finish();
    } else if (isOver) putBack(source);
    else begin(ask(source));
  }

  function begin(asked: Asked): void {
    waiting.add(asked);
    timer = setTimeout(() => askNext().catch(fail), hedgeAfterMs);
    asked.answered.then((isGood) => {
      if (isOver) return;
      if (isGood) return finish(asked);
      waiting.delete(asked);
      return askNext();
    }).catch(fail);
  }

  askNext().catch(fail);
  return promise;
}
