/** A port of 127.0.0.1 that nobody listens on now, for a program that must be told one. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
