/** Content types of TLS records (RFC 8446, 5.1). */
const APPLICATION_DATA = 23;

/** Content type, version, length. */
const HEADER_BYTES = 5;

/**
 * Follows what a client of TLS sends, without understanding it, up to its first record of
 * application data: in TLS 1.3 that ends its handshake, in TLS 1.2 it is what it wanted to say.
 */
export class TlsRecords {
  readonly #header = new Uint8Array(HEADER_BYTES);
  #headerLength = 0;
  /** Of the record whose header is read. */
  #bytesLeft = 0;
  #hasData = false;

  /** True once such a record has begun. */
  get hasData(): boolean {
    return this.#hasData;
  }

  /** The next bytes, as they come. */
  take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length && !this.#hasData;) {
      const skipped = Math.min(this.#bytesLeft, bytes.length - at);
      this.#bytesLeft -= skipped;
      at += skipped;
      if (at < bytes.length) this.#takeOfHeader(bytes[at++] ?? 0);
    }
  }

  #takeOfHeader(byte: number): void {
    this.#header[this.#headerLength++] = byte;
    if (this.#headerLength < HEADER_BYTES) return;
    this.#headerLength = 0;
    const [type, , , high = 0, low = 0] = this.#header;
    this.#hasData = type === APPLICATION_DATA;
    this.#bytesLeft = (high << 8) | low;
  }
}
