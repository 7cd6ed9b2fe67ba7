/** Below the ports that systems give out by themselves: nobody else gets one meanwhile. */
const PORT_MIN = 12_000;
const PORT_MAX = 30_000;

/** A port of 127.0.0.1 that nobody listens on now, for a program that needs one. */
export function freePort(): number {
  for (;;) {
    const port = PORT_MIN + Math.floor(Math.random() * (PORT_MAX - PORT_MIN));
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}
