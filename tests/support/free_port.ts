import { ownPort } from "./own_ports.ts";

/** A port of 127.0.0.1 that nobody listens on now or soon, for a program that needs one. */
export function freePort(): number {
  for (;;) {
    const port = ownPort();
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}
