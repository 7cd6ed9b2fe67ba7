const PROGRAM = new URL("./reset_clients.ts", import.meta.url).pathname;

export interface Resets {
  readonly count: number;
  /** Default: as fast as they can. */
  readonly perSecond?: number;
  /** Ends them before. */
  readonly signal?: AbortSignal;
}

/** Connects to a port of 127.0.0.1 and resets, so many times; resolves when it is done. */
export async function resetConnections(
  port: number,
  { count, perSecond = 0, signal }: Resets,
): Promise<void> {
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--allow-ffi", PROGRAM, ...[port, perSecond, count].map(String)],
    ...(signal === undefined ? {} : { signal }),
    stdout: "null",
    stderr: "piped",
  }).output();
  if (!success && !signal?.aborted) throw new Error(new TextDecoder().decode(stderr));
}
