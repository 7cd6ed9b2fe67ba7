import { Failure, messageOf } from "../../base/failure.ts";

/** A collector that takes longer is not waited for; shutting down waits no longer, either. */
const CALL_MAX_MS = 2_500;

export interface GrpcTransport extends Disposable {
  /** One unary call. Throws a Failure when the message did not arrive, or was refused. */
  call(path: string, message: Uint8Array): Promise<void>;
}

/**
 * gRPC over the HTTP/2 of Deno's fetch, with and without TLS: all that OTLP needs are unary calls.
 * (grpc-js from 1.13 on cannot connect in Deno 2.6.8.) `url` is without a path.
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
    const signal = AbortSignal.timeout(CALL_MAX_MS);
    try {
      const headers = { "content-type": "application/grpc", te: "trailers" };
      const body = framed(message);
      const response = await fetch(to, { method: "POST", client, headers, body, signal });
      return { response, body: await response.bytes() };
    } catch (error) {
      const reason = signal.aborted ? `no answer within ${CALL_MAX_MS} ms` : messageOf(error);
      throw new Failure("unavailable", `Cannot export telemetry: ${reason}`, {}, error);
    }
  };
  return {
    async call(path, message) {
      const { response, body } = await posted(url + path, message);
      // A call that is refused has its status among the headers; one that went well ends with a
      // message (fetch does not show trailers).
      const status = response.headers.get("grpc-status") ?? (body.length >= 5 ? "0" : "2");
      if (response.status === 200 && status === "0") return;
      const reason = response.headers.get("grpc-message") ?? "";
      const detail = `HTTP status ${response.status}, gRPC status ${status} ${reason}`;
      throw new Failure("unavailable", `Cannot export telemetry: ${detail.trimEnd()}`);
    },
    [Symbol.dispose]: () => client.close(),
  };
}

/** A gRPC message: one byte for "not compressed", four bytes of length, the bytes. */
function framed(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(5 + message.length);
  new DataView(frame.buffer).setUint32(1, message.length);
  frame.set(message, 5);
  return frame;
}
