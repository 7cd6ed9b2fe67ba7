import type { RunBelow } from "./tracer.ts";

/**
 * The same steps, each of them done below one span: whoever asks for the next may be anywhere.
 * `left` is what they end with when they are left early.
 */
export async function* stepsBelow<Item, End>(
  run: RunBelow,
  steps: AsyncGenerator<Item, End>,
  left: End,
): AsyncGenerator<Item, End> {
  try {
    for (;;) {
      const { value, done } = await run(() => steps.next());
      if (done) return value;
      yield value;
    }
  } finally {
    await run(() => steps.return(left));
  }
}
