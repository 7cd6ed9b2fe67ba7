import { isIP } from "node:net";
import { Buffer } from "node:buffer";

/** The beginning of a connection that should hold a header of PROXY protocol version 2. */
export type ProxyHeader =
  /** The header is incomplete. */
  | { readonly kind: "more" }
  /** `client`: `undefined` if the proxy speaks for itself, or does not know. */
  | { readonly kind: "header"; readonly length: number; readonly client?: Deno.NetAddr }
  | { readonly kind: "refused"; readonly reason: ProxyHeaderFault };

/** Fault of a header, for the log. */
export type ProxyHeaderFault =
  | "no PROXY header"
  | "PROXY header of version 1; send version 2"
  | "PROXY header of an unknown version"
  | "PROXY header too long"
  | "PROXY header too short";

const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
const TEXT_SIGNATURE = Buffer.from("PROXY ", "latin1");

/** Signature, version and command, family, and the length of the rest. */
const FIXED_BYTES = 16;

/** Addresses have at most 216 bytes; the rest are facts about TLS and the like. */
export const PROXY_HEADER_BYTES_MAX = 1_024;

const VERSION = 2;
const LOCAL = 0;
const PROXY = 1;

/** Bytes of one address, by family and protocol. Others carry no address for us. */
const ADDRESS_BYTES: ReadonlyMap<number, number> = new Map([[0x11, 4], [0x21, 16]]);
const PORT_BYTES = 2;

/** Reads the header at the beginning of `bytes`. */
export function readProxyHeader(bytes: Uint8Array): ProxyHeader {
  if (startsLike(bytes, TEXT_SIGNATURE) && bytes.length >= TEXT_SIGNATURE.length) {
    return refused("PROXY header of version 1; send version 2");
  }
  if (!startsLike(bytes, SIGNATURE)) {
    return startsLike(bytes, TEXT_SIGNATURE) ? { kind: "more" } : refused("no PROXY header");
  }
  if (bytes.length < FIXED_BYTES) return { kind: "more" };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const versionAndCommand = view.getUint8(12);
  const command = versionAndCommand & 0x0f;
  const length = FIXED_BYTES + view.getUint16(14);
  if (versionAndCommand >> 4 !== VERSION || command > PROXY) {
    return refused("PROXY header of an unknown version");
  }
  if (length > PROXY_HEADER_BYTES_MAX) return refused("PROXY header too long");
  if (bytes.length < length) return { kind: "more" };
  if (command === LOCAL) return { kind: "header", length };
  const addressBytes = ADDRESS_BYTES.get(view.getUint8(13));
  if (addressBytes === undefined) return { kind: "header", length };
  const portAt = FIXED_BYTES + 2 * addressBytes;
  if (length < portAt + 2 * PORT_BYTES) return refused("PROXY header too short");
  const hostname = addressOf(bytes.subarray(FIXED_BYTES, FIXED_BYTES + addressBytes));
  return {
    kind: "header",
    length,
    client: { transport: "tcp", hostname, port: view.getUint16(portAt) },
  };
}

/** True if one of the two is the beginning of the other. */
function startsLike(bytes: Uint8Array, signature: Uint8Array): boolean {
  const length = Math.min(bytes.length, signature.length);
  return signature.subarray(0, length).every((byte, at) => byte === bytes[at]);
}

function refused(reason: ProxyHeaderFault): ProxyHeader {
  return { kind: "refused", reason };
}

/** Address as Deno writes it: IPv6 without its longest run of zeros. */
function addressOf(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  const groups = Array.from(
    { length: bytes.length / 2 },
    (_, at) => ((bytes[2 * at] ?? 0) << 8 | (bytes[2 * at + 1] ?? 0)).toString(16),
  ).join(":");
  const plain = new URL(`http://[${groups}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(plain);
  return mapped === null || isIP(plain) === 0 ? plain : bytes.subarray(12).join(".");
}
