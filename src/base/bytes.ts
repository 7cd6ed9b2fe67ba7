/** Bytes that no other thread shares, as the streams of the runtime want them. */
export type Bytes = Uint8Array<ArrayBuffer>;
