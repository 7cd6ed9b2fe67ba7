import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import type {
  EncodeOrder,
  NarEncoder,
  NarEncoding,
} from "../../src/cache/recompress/nar_encoder.ts";
import { files } from "../../src/runtime/current.ts";
import { writeFully } from "../../src/base/files.ts";
import { decoded } from "../../src/cache/verify/decoders.ts";
import { storedZstd } from "./stored_frames.ts";

/** The file that it makes of a NAR: two frames, other bytes than those that larder speaks. */
export function recompressedFile(nar: Bytes): Bytes {
  const half = nar.length >> 1;
  return new Uint8Array(
    Buffer.concat([nar.subarray(0, half), nar.subarray(half)].map(storedZstd)),
  );
}

/** Writes zstd in the process itself, where the runtime cannot. */
export class StubEncoder implements NarEncoder {
  readonly orders: EncodeOrder[] = [];
  /** Changes the encoded bytes, or throws in place of them. */
  fault: (file: Bytes) => Bytes = (file) => file;
  /** Called before each piece, and awaited unless the encoding is ended early. */
  onPiece: () => unknown = () => undefined;

  start(order: EncodeOrder, turn: () => Promise<void>): NarEncoding {
    this.orders.push(order);
    const pieces: Bytes[] = [];
    const ended = Promise.withResolvers<void>();
    const encode = async () => {
      await ended.promise;
      const { compression, narSize: narSizeMax } = order;
      const decoding = decoded(ReadableStream.from(pieces), { compression, narSizeMax });
      const copy = (piece: Uint8Array) => new Uint8Array(piece);
      const nar: Bytes = new Uint8Array(Buffer.concat(await Array.fromAsync(decoding, copy)));
      const file = this.fault(recompressedFile(nar));
      using out = files.openSync(order.path, { write: true, createNew: true });
      await writeFully(out, file);
      const digestOf = (bytes: Bytes) => createHash("sha256").update(bytes).digest();
      return {
        kind: "encoded",
        ...{ narDigest: digestOf(nar), narSize: nar.length },
        ...{ fileDigest: digestOf(file), fileSize: file.length },
      } as const;
    };
    const encoded = encode();
    encoded.catch(() => undefined);
    return {
      encoded,
      write: async (bytes) => {
        const endedEarly = ended.promise.catch(() => undefined);
        await Promise.race([turn(), endedEarly]);
        await Promise.race([this.onPiece(), endedEarly]);
        pieces.push(bytes);
      },
      end: () => ended.resolve(),
      [Symbol.dispose]: () => ended.reject(new Error("ended early")),
    };
  }
}
