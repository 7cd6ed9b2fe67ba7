import type { Socket } from "./request_reader.ts";

/** Head and body may leave in two writes. The second one must not wait for an ACK. */
export function setNoDelay(socket: Socket): void {
  if (isTcp(socket)) socket.setNoDelay(true);
}

function isTcp(socket: Socket): socket is Deno.TcpConn {
  return "setNoDelay" in socket;
}
