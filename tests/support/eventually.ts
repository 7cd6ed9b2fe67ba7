/** It only ends a test that fails: a busy machine may take long. */
const LIMIT_MS = 60_000;
const STEP_MS = 2;

/** For an event without a notice: resolves once `isSo`, and throws if it never is. */
export async function eventually(
  what: string,
  isSo: () => boolean | Promise<boolean>,
): Promise<void> {
  for (const untilMs = performance.now() + LIMIT_MS; !await isSo();) {
    if (performance.now() > untilMs) {
      throw new Error(`Cannot see that ${what}: ${LIMIT_MS} ms over`);
    }
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
}
