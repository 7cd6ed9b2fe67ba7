/** Each process of tests has so many ports. All are below those that systems give out (32768). */
const PORTS_EACH = 250;
const FIRST_PORT = 12_000;
const SHARES = 80;

/**
 * On the first port of this process's share, while it runs: no other one takes the share. Scripts
 * that only look for programs may not listen, and need no port.
 */
const share = mayListen() ? takeShare() : undefined;
let last = 0;

/**
 * A port of 127.0.0.1 that no other process of tests uses, even while nothing listens on it. It
 * comes again only after all others of this process.
 */
export function ownPort(): number {
  if (share === undefined) throw new Error("Cannot give a port: --allow-net is missing");
  last = last % (PORTS_EACH - 1) + 1;
  return share.addr.port + last;
}

function mayListen(): boolean {
  return Deno.permissions.querySync({ name: "net", host: "127.0.0.1" }).state === "granted";
}

function takeShare(): Deno.TcpListener {
  const start = Math.floor(Math.random() * SHARES);
  for (let tried = 0; tried < SHARES; tried++) {
    const port = FIRST_PORT + (start + tried) % SHARES * PORTS_EACH;
    try {
      return Deno.listen({ hostname: "127.0.0.1", port });
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
  throw new Error("Cannot take ports: other processes have all of them");
}
