import { deflateRawSync, deflateSync } from "node:zlib";
import type { Bytes } from "../../src/base/bytes.ts";
import { available, compress } from "./compressors.ts";
import type { Fault } from "./faults.ts";

/** A Content-Encoding of an upstream; `undefined`: it says nothing. */
interface Encoding {
  readonly name: string | undefined;
  /** Encodes the body, the last one outermost. */
  readonly codecs: readonly TestCodec[];
}

type TestCodec = "gzip" | "deflate" | "raw deflate" | "br" | "zstd" | "xz" | "bzip2";

const ENCODINGS: readonly Encoding[] = [
  { name: "gzip", codecs: ["gzip"] },
  { name: "GZIP", codecs: ["gzip"] },
  { name: "x-gzip", codecs: ["gzip"] },
  { name: "deflate", codecs: ["deflate"] },
  { name: "Deflate", codecs: ["raw deflate"] },
  { name: "br", codecs: ["br"] },
  { name: "Br", codecs: ["br"] },
  { name: "zstd", codecs: ["zstd"] },
  { name: "xz", codecs: ["xz"] },
  { name: "XZ", codecs: ["xz"] },
  { name: "bzip2", codecs: ["bzip2"] },
  { name: "identity", codecs: [] },
  { name: "Identity, gzip", codecs: ["gzip"] },
  { name: "zstd, gzip", codecs: ["zstd", "gzip"] },
  { name: "gzip,br", codecs: ["gzip", "br"] },
  { name: undefined, codecs: [] },
  { name: undefined, codecs: ["gzip"] },
  { name: undefined, codecs: ["zstd"] },
  { name: undefined, codecs: ["xz"] },
  { name: undefined, codecs: ["bzip2"] },
];

/** Every encoding that larder reads. `missing`: why this machine cannot write it, or empty. */
export const READ_ENCODINGS = ENCODINGS.map((encoding) => {
  const { name, codecs } = encoding;
  const title = `${codecs.join(", ") || "plain"} as ${name ?? "nothing"}`;
  const missing = codecs.includes("bzip2") ? available("bzip2") : "";
  return { title, missing, isEncoded: codecs.length > 0, fault: encodedAs(encoding) };
});

/** The body in these codecs, under this name of theirs. */
export function encodedAs({ name, codecs }: Encoding): Fault {
  return async (answer) => {
    let body = await new Response(answer.body as BodyInit).bytes();
    for (const codec of codecs) body = await encoded(body, codec);
    const headers = new Headers(answer.headers);
    if (name !== undefined) headers.set("content-encoding", name);
    return { ...answer, headers, body, framing: body.length };
  };
}

async function encoded(bytes: Bytes, codec: TestCodec): Promise<Bytes> {
  if (codec === "deflate") return new Uint8Array(deflateSync(bytes));
  if (codec === "raw deflate") return new Uint8Array(deflateRawSync(bytes));
  return await compress(bytes, codec);
}
