/**
 * A signal that fires with the first of several. `AbortSignal.any` holds its results weakly: when
 * one is collected depends on memory, and a world must not.
 */
export function eitherSignal(...signals: readonly AbortSignal[]): AbortSignal {
  const either = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) either.abort(signal.reason);
    else signal.addEventListener("abort", () => either.abort(signal.reason), { once: true });
  }
  return either.signal;
}
