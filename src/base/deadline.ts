/** Resolves to `undefined` when `work` is not done after `limitMs`; the work itself goes on. */
export async function within<Value>(
  work: Promise<Value>,
  limitMs: number,
): Promise<Value | undefined> {
  let timer: number | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
