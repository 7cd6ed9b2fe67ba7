/** HTTP/2 frames, RFC 9113: type numbers and flags. */
const DATA = 0;
const HEADERS = 1;
const SETTINGS = 4;
const GOAWAY = 7;
const END_STREAM = 1;
const END_HEADERS = 4;
const PREFACE_BYTES = 24;
/** HPACK: the indexed field ":status: 200". */
const STATUS_200 = Uint8Array.of(0x88);

/**
 * HTTP/2 over TLS on 127.0.0.1. Every request gets the same text as its answer. Those of the
 * first connections get GOAWAY instead, which says that the server did not read them.
 */
export class GoawayServer implements AsyncDisposable {
  goawayCount = 0;
  readonly #listener: Deno.TlsListener;
  readonly #connections = new Map<Deno.TlsConn, Promise<void>>();
  readonly #text: string;
  #goawaysLeft: number;

  constructor(tls: { cert: string; key: string }, text: string, goaways: number) {
    this.#text = text;
    this.#goawaysLeft = goaways;
    const place = { hostname: "127.0.0.1", port: 0 };
    this.#listener = Deno.listenTls({ ...place, ...tls, alpnProtocols: ["h2"] });
    this.#accept();
  }

  get url(): string {
    return `https://127.0.0.1:${this.#listener.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const connection of this.#connections.keys()) close(connection);
    await Promise.all(this.#connections.values());
  }

  async #accept(): Promise<void> {
    for await (const connection of this.#listener) {
      const served = this.#serve(connection).catch(() => undefined);
      this.#connections.set(connection, served);
      served.finally(() => {
        // Also one whose client left before it said anything.
        close(connection);
        this.#connections.delete(connection);
      });
    }
  }

  async #serve(connection: Deno.TlsConn): Promise<void> {
    await readExactly(connection, PREFACE_BYTES);
    await connection.write(frame(SETTINGS, 0, 0));
    for (;;) {
      const head = new DataView((await readExactly(connection, 9)).buffer);
      await readExactly(connection, (head.getUint16(0) << 8) | head.getUint8(2));
      if (head.getUint8(3) !== HEADERS) continue;
      if (this.#goawaysLeft-- > 0) {
        this.goawayCount++;
        // Last stream 0, no error.
        await connection.write(frame(GOAWAY, 0, 0, new Uint8Array(8)));
        return close(connection);
      }
      const stream = head.getUint32(5);
      await connection.write(frame(HEADERS, END_HEADERS, stream, STATUS_200));
      const text = new TextEncoder().encode(this.#text);
      await connection.write(frame(DATA, END_STREAM, stream, text));
    }
  }
}

function frame(type: number, flags: number, stream: number, payload = new Uint8Array(0)) {
  const bytes = new Uint8Array(9 + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, payload.length >> 8);
  view.setUint8(2, payload.length & 255);
  view.setUint8(3, type);
  view.setUint8(4, flags);
  view.setUint32(5, stream);
  bytes.set(payload, 9);
  return bytes;
}

async function readExactly(connection: Deno.TlsConn, byteLength: number) {
  const bytes = new Uint8Array(byteLength);
  for (let at = 0; at < byteLength;) {
    const read = await connection.read(bytes.subarray(at));
    if (read === null) throw new Error("the client has left");
    at += read;
  }
  return bytes;
}

function close(connection: Deno.TlsConn): void {
  try {
    connection.close();
  } catch {
    // The client has left.
  }
}
