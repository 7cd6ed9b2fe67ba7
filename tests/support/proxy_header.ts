import { Buffer } from "node:buffer";
import { isIPv4 } from "node:net";

export const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");

export interface ProxyHeaderParts {
  readonly from: string;
  readonly port: number;
  /** The bytes behind the addresses. */
  readonly facts?: Uint8Array;
  readonly version?: number;
  readonly command?: number;
  readonly family?: number;
  /** The length that the header says, in place of the right one. */
  readonly length?: number;
}

/** The header of PROXY protocol version 2, as a proxy sends it. */
export function proxyHeader(parts: ProxyHeaderParts): Buffer {
  const { from, port, facts = new Uint8Array(), version = 2, command = 1 } = parts;
  const address = addressBytes(from);
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(port, 0);
  const body = Buffer.concat([address, Buffer.alloc(address.length), ports, facts]);
  const fixed = Buffer.alloc(4);
  fixed.writeUInt8(version << 4 | command, 0);
  fixed.writeUInt8(parts.family ?? (address.length === 4 ? 0x11 : 0x21), 1);
  fixed.writeUInt16BE(parts.length ?? body.length, 2);
  return Buffer.concat([SIGNATURE, fixed, body]);
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  const plain = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = "", tail] = plain.split("::");
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => "0");
  const groups = [...first, ...zeros, ...last].map((group) => parseInt(group, 16));
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 255]));
}
