import { inTurn } from "./in_turn.ts";
import { ownPort } from "./own_ports.ts";

const TRIES_MAX = 200;
const RETRY_MS = 10;

/**
 * Listens on a port of 127.0.0.1 that can be closed and, later, listened on again. While it is
 * closed, no other process gets it, and a client that tries it cannot reach itself.
 */
export function listenOnSteadyPort(): Deno.TcpListener {
  for (let tried = 0; tried < TRIES_MAX; tried++) {
    try {
      return Deno.listen({ hostname: "127.0.0.1", port: ownPort() });
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
  throw new Error(`Cannot listen: ${TRIES_MAX} ports in a row are in use`);
}

/**
 * Listens again on a port that was closed. A process that another test is starting holds a copy
 * of the closed listener for a moment. Until it drops the copy, this tries again.
 */
export async function listenAgain(port: number, tcpBacklog?: number): Promise<Deno.TcpListener> {
  const options = { hostname: "127.0.0.1", port, ...(tcpBacklog !== undefined && { tcpBacklog }) };
  for (let tried = 1;; tried++) {
    try {
      return Deno.listen(options);
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse) || tried === TRIES_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** Writes every byte, in pieces so that `onWritten` can count while a slow client reads. */
export async function writeAll(
  conn: Pick<Deno.Conn, "write">,
  bytes: Uint8Array,
  onWritten?: (byteLength: number) => void,
): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const written = await inTurn(() => conn.write(bytes.subarray(at, at + 256 * 1024)));
    at += written;
    onWritten?.(written);
  }
}
