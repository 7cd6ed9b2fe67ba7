/** A pool of upstreams that are up, in this order, and that no test asks for a narinfo. */
export function quietPool(upstreams: readonly string[]) {
  return {
    narinfo: () => Promise.resolve({ kind: "absent" as const }),
    order: () => [...upstreams],
    waitOf: () => "full" as const,
    probeIfDown: () => Promise.resolve(),
    noteNar: () => undefined,
    has: (url: string) => upstreams.includes(url),
    noteNarTime: () => undefined,
    busy: () => undefined,
    isSpare: () => true,
  };
}
