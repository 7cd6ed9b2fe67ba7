import type { NarSource } from "../../metadata/metadata_store.ts";
import { clock } from "../../runtime/current.ts";

/** A source with a request in flight. */
export interface SourceAttempt {
  readonly source: NarSource;
  /** True as soon as it answers with the file; false when it will not. Never rejects. */
  readonly answered: Promise<boolean>;
  /** Ends the request: another source was quicker. Default: the request goes on. */
  cancel?(): void;
}

export interface SourceRace<Racer extends SourceAttempt> {
  /** The source to ask next; `undefined`: none is left. */
  readonly next: () => Promise<NarSource | undefined>;
  readonly ask: (source: NarSource) => Racer;
  /** Called with each source that lost the race. Default: it is dropped. */
  readonly putBack?: (source: NarSource) => void;
  /** How long one source has the request alone. */
  readonly hedgeAfterMs: number;
}

/**
 * Asks the sources one after another: the next one when the last one fails, or is late. A late one
 * stays in the race. Resolves to the first that answers; `undefined`: none did.
 */
export function firstToAnswer<Racer extends SourceAttempt>(
  { next, ask, putBack, hedgeAfterMs }: SourceRace<Racer>,
): Promise<Racer | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Racer | undefined>();
  const waiting = new Set<Racer>();
  let [isOver, isFinding, hasMore] = [false, false, true];
  let hedging: Disposable | undefined;
  let last: Racer | undefined;

  function finish(winner?: Racer): void {
    isOver = true;
    hedging?.[Symbol.dispose]();
    if (winner !== undefined) waiting.delete(winner);
    for (const loser of waiting) {
      loser.cancel?.();
      putBack?.(loser.source);
    }
    resolve(winner);
  }

  function fail(error: unknown): void {
    reject(error);
    finish();
  }

  async function askNext(): Promise<void> {
    hedging?.[Symbol.dispose]();
    if (isFinding || isOver) return;
    isFinding = true;
    const source = hasMore ? await next() : undefined;
    isFinding = false;
    if (source === undefined) {
      hasMore = false;
      if (waiting.size === 0 && !isOver) finish();
    } else if (isOver) putBack?.(source);
    else begin(ask(source));
  }

  function begin(attempt: Racer): void {
    waiting.add(attempt);
    last = attempt;
    hedging = clock.countdown(hedgeAfterMs, () => void askNext().catch(fail));
    attempt.answered.then((isGood) => {
      if (isOver) return;
      if (isGood) return finish(attempt);
      waiting.delete(attempt);
      // A late one that fails is replaced already.
      if (attempt === last || waiting.size === 0) return askNext();
    }).catch(fail);
  }

  askNext().catch(fail);
  return promise;
}
