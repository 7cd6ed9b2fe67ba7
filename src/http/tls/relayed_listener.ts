import { clock } from "../../runtime/current.ts";
import { type Link, linkOf } from "./link.ts";
import type { Incoming } from "../server/http_server.ts";
import { ReadySockets } from "../server/ready_sockets.ts";
import type { Socket } from "../server/request_reader.ts";
import type { WorkerRelay } from "./worker_relay.ts";

export type RelayOfLinks = Pick<
  WorkerRelay,
  "accepted" | "forget" | "secured" | "innerClosed" | "abort"
>;

/** The relay reports within milliseconds; a busy machine may take longer. */
const UNMATCHED_MS = 5_000;

/**
 * Accepts the relay's connections, each after the relay has named its client. It never accepts
 * connections of other programs on this machine.
 */
export class RelayedListener implements Incoming, Disposable {
  readonly #listener: Deno.TlsListener;
  readonly #relay: RelayOfLinks;
  readonly #sockets = new ReadySockets(() => this.#acceptOne());
  /** Accepted connections that the relay has not reported, with their times. */
  readonly #unmatched = new Map<Deno.TlsConn, number>();

  constructor(listener: Deno.TlsListener, relay: RelayOfLinks) {
    this.#listener = listener;
    this.#relay = relay;
  }

  accept(): Promise<Socket> {
    return this.#sockets.next();
  }

  /** Closes connections that the relay did not report in time. */
  closeUnmatched(nowMs = clock.nowMs()): void {
    for (const [inner, sinceMs] of this.#unmatched) {
      if (nowMs - sinceMs > UNMATCHED_MS) this.#refuse(inner);
    }
  }

  [Symbol.dispose](): void {
    for (const inner of this.#unmatched.keys()) this.#refuse(inner);
    this.#listener.close();
  }

  async #acceptOne(): Promise<void> {
    const inner = await this.#listener.accept();
    const link = linkOfEnds(inner);
    this.#unmatched.set(inner, clock.nowMs());
    this.#relay.accepted(link, (client) => {
      this.#unmatched.delete(inner);
      this.#sockets.add(new RelayedSocket(inner, link, { relay: this.#relay, client }));
    });
  }

  #refuse(inner: Deno.TlsConn): void {
    this.#unmatched.delete(inner);
    this.#relay.forget(linkOfEnds(inner));
    inner.close();
  }
}

function linkOfEnds({ localAddr, remoteAddr }: Deno.TlsConn): Link {
  return linkOf({
    relayPort: (remoteAddr as Deno.NetAddr).port,
    innerPort: (localAddr as Deno.NetAddr).port,
  });
}

interface RelayedFrom {
  readonly relay: RelayOfLinks;
  readonly client: Deno.NetAddr;
}

/** A connection of the relay, which learns of its handshake and its end. */
class RelayedSocket implements Socket {
  readonly remoteAddr: Deno.NetAddr;
  readonly #inner: Deno.TlsConn;
  readonly #link: Link;
  readonly #relay: RelayOfLinks;
  #isWriting = false;

  constructor(inner: Deno.TlsConn, link: Link, { relay, client }: RelayedFrom) {
    this.#inner = inner;
    this.#link = link;
    this.#relay = relay;
    this.remoteAddr = client;
    // A failed handshake fails the reads, too.
    inner.handshake().then(() => relay.secured(link), () => undefined);
  }

  read(bytes: Uint8Array): Promise<number | null> {
    return this.#inner.read(bytes);
  }

  async write(bytes: Uint8Array): Promise<number> {
    this.#isWriting = true;
    const written = await this.#inner.write(bytes);
    this.#isWriting = false;
    return written;
  }

  closeWrite(): Promise<void> {
    return this.#inner.closeWrite();
  }

  close(): void {
    // A stalled client could keep the relay's sockets for ever.
    if (this.#isWriting) this.#relay.abort(this.#link);
    else this.#relay.innerClosed(this.#link);
    this.#inner.close();
  }
}
