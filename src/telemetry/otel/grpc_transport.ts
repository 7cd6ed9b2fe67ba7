import { boundedBytes } from "../../base/bounded_text.ts";
import { clock } from "../../runtime/current.ts";
import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { formatMs } from "../../base/format_units.ts";

/** A collector answers with some bytes. */
const ANSWER_BYTES_MAX = 1 << 20;

/** Timeout of a call, and thus of the last one at shutdown. */
const CALL_MAX_MS = 2_500;

export interface GrpcTransport extends Disposable {
  /** One unary call. Throws a Failure if the collector did not accept the message. */
  call(path: string, message: Uint8Array): Promise<void>;
}

/**
 * gRPC over the HTTP/2 of Deno's fetch, with and without TLS. OTLP needs unary calls alone.
 * (grpc-js from 1.13 on cannot connect in Deno 2.6.8.) `url` has no path.
 */
export function createGrpcTransport(
  url: string,
  caCertificates: readonly string[],
): GrpcTransport {
  const client = Deno.createHttpClient({
    http1: false,
    http2: true,
    ...(caCertificates.length === 0 ? {} : { caCerts: [...caCertificates] }),
  });
  const posted = async (to: string, message: Uint8Array) => {
    using limit = clock.deadline(CALL_MAX_MS);
    const { signal } = limit;
    try {
      const headers = { "content-type": "application/grpc", te: "trailers" };
      const body = framed(message);
      const response = await fetch(to, { method: "POST", client, headers, body, signal });
      return { response, body: await boundedBytes(response, { bytesMax: ANSWER_BYTES_MAX }) };
    } catch (error) {
      const reason = signal.aborted
        ? `no answer within ${formatMs(CALL_MAX_MS)}`
        : messageOf(error);
      throw new Failure("unavailable", `Cannot export telemetry: ${reason}`, {}, error);
    }
  };
  return {
    async call(path, message) {
      const { response, body } = await posted(url + path, message);
      // A refused call has its status in the headers. A successful one has a message, as fetch
      // hides trailers.
      const status = response.headers.get("grpc-status") ?? (body.length >= 5 ? "0" : "2");
      if (response.status === 200 && status === "0") return;
      const reason = response.headers.get("grpc-message") ?? "";
      const detail = `HTTP status ${response.status}, gRPC status ${status} ${reason}`;
      throw new Failure("unavailable", `Cannot export telemetry: ${detail.trimEnd()}`);
    },
    [Symbol.dispose]: () => client.close(),
  };
}

/** A gRPC frame: one byte for "not compressed", four bytes of length, the message. */
function framed(message: Uint8Array): Bytes {
  const frame = new Uint8Array(5 + message.length);
  new DataView(frame.buffer).setUint32(1, message.length);
  frame.set(message, 5);
  return frame;
}
