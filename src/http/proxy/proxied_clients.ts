import { Buffer } from "node:buffer";
import { isIP } from "node:net";
import type { Bytes } from "../../base/bytes.ts";
import { isOfThisMachine, peerAddress } from "../message/message.ts";
import type { SilentClient, SilentClients } from "../server/accepting.ts";
import { type ProxyRange, TrustedProxies } from "./trusted_proxies.ts";

/** The first bytes behind a PROXY header, and the address of the client that it names. */
export interface ProxiedClient {
  readonly address: Deno.Addr & { readonly viaProxy: true };
  readonly bytes: Bytes;
}

/** The reason of a closed connection. */
export type ProxyClosed =
  | ProxyHeaderFault
  | "incomplete PROXY header"
  | "PROXY header of an untrusted address";

export interface ProxiedClientsDeps {
  readonly silent: SilentClients;
  /** The proxies that may connect; none: those on this machine. */
  readonly ranges: readonly ProxyRange[];
  /** Called with the reason for each closed connection. */
  readonly closed: (reason: ProxyClosed) => void;
}

type ProxyConnection = SilentClient & Pick<Deno.Conn, "remoteAddr">;

/** Reads the PROXY header of each connection, before anything else of it. */
export class ProxiedClients {
  readonly #deps: ProxiedClientsDeps;
  readonly #trusted: TrustedProxies;

  constructor(deps: ProxiedClientsDeps) {
    this.#deps = deps;
    this.#trusted = new TrustedProxies(deps.ranges);
  }

  /** `undefined` for a closed connection: without a right header, or of no trusted proxy. */
  async open(connection: ProxyConnection): Promise<ProxiedClient | undefined> {
    const { remoteAddr } = connection;
    const { silent, ranges, closed } = this.#deps;
    const peer = peerAddress(remoteAddr);
    if (ranges.length === 0 ? !isOfThisMachine(peer) : !this.#trusted.trusts(peer)) {
      closed("PROXY header of an untrusted address");
      return void connection.close();
    }
    const bytes = await silent.firstBytes(
      connection,
      (some) => readProxyHeader(some).kind !== "more",
    );
    // It has left, or was closed.
    if (bytes === undefined) return undefined;
    const header = readProxyHeader(bytes);
    if (header.kind === "header") {
      const address = { ...header.client ?? remoteAddr, viaProxy: true } as const;
      return { address, bytes: bytes.slice(header.length) };
    }
    closed(header.kind === "refused" ? header.reason : "incomplete PROXY header");
    return void connection.close();
  }
}

/** The beginning of a connection that should hold a header of PROXY protocol version 2. */
type ProxyHeader =
  /** The header is incomplete. */
  | { readonly kind: "more" }
  /** `client`: `undefined` if the proxy speaks for itself, or does not know. */
  | { readonly kind: "header"; readonly length: number; readonly client?: Deno.NetAddr }
  | { readonly kind: "refused"; readonly reason: ProxyHeaderFault };

/** Fault of a header, for the log. */
type ProxyHeaderFault =
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
