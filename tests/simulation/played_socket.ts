import type { Incoming } from "../../src/http/server/http_server.ts";
import type { Socket } from "../../src/http/server/request_reader.ts";

/** Bytes on their way that each direction holds, as the buffers of a kernel do. */
const BUFFER_BYTES = 256 * 1024;

/** One direction of a connection. */
class Pipe {
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;
  #hasEnded = false;
  #isBroken = false;
  #changed = Promise.withResolvers<void>();

  async read(into: Uint8Array): Promise<number | null> {
    for (;;) {
      if (this.#isBroken) throw new Deno.errors.BadResource("Bad resource ID");
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        const taken = piece.subarray(0, into.length);
        into.set(taken);
        if (taken.length < piece.length) this.#pieces.unshift(piece.subarray(taken.length));
        this.#bytes -= taken.length;
        this.#wake();
        return taken.length;
      }
      if (this.#hasEnded) return null;
      await this.#changed.promise;
    }
  }

  async write(bytes: Uint8Array): Promise<number> {
    for (;;) {
      if (this.#hasEnded) throw new Deno.errors.BrokenPipe("Broken pipe (os error 32)");
      const room = BUFFER_BYTES - this.#bytes;
      if (room > 0) {
        const piece = bytes.slice(0, room);
        this.#pieces.push(piece);
        this.#bytes += piece.length;
        this.#wake();
        return piece.length;
      }
      await this.#changed.promise;
    }
  }

  /** What was written can still be read. */
  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  /** Its reader is gone. */
  break(): void {
    this.#isBroken = true;
    this.end();
  }

  #wake(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }
}

/** An end of a connection in memory. */
export class PlayedSocket implements Socket {
  readonly remoteAddr: Deno.Addr = { transport: "tcp", hostname: "192.0.2.7", port: 4711 };
  readonly #incoming: Pipe;
  readonly #outgoing: Pipe;

  private constructor(incoming: Pipe, outgoing: Pipe) {
    this.#incoming = incoming;
    this.#outgoing = outgoing;
  }

  /** Both ends. */
  static pair(): readonly [PlayedSocket, PlayedSocket] {
    const [one, other] = [new Pipe(), new Pipe()];
    return [new PlayedSocket(one, other), new PlayedSocket(other, one)];
  }

  read(into: Uint8Array): Promise<number | null> {
    return this.#incoming.read(into);
  }

  write(bytes: Uint8Array): Promise<number> {
    return this.#outgoing.write(bytes);
  }

  async closeWrite(): Promise<void> {
    this.#outgoing.end();
  }

  close(): void {
    this.#outgoing.end();
    this.#incoming.break();
  }
}

/** The connections to one server. */
export class PlayedListener implements Incoming {
  readonly #waiting: Socket[] = [];
  #isClosed = false;
  #changed = Promise.withResolvers<void>();

  async accept(): Promise<Socket> {
    for (;;) {
      const socket = this.#waiting.shift();
      if (socket !== undefined) return socket;
      if (this.#isClosed) throw new Deno.errors.BadResource("Listener has been closed");
      await this.#changed.promise;
    }
  }

  /** The client's end of a new connection. */
  connect(): PlayedSocket {
    const [client, server] = PlayedSocket.pair();
    this.#waiting.push(server);
    this.#wake();
    return client;
  }

  close(): void {
    this.#isClosed = true;
    this.#wake();
  }

  #wake(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }
}
