import { createHash } from "node:crypto";
import type { Bytes } from "../../src/base/bytes.ts";
import type {
  EncodeOrder,
  NarEncoder,
  NarEncoding,
} from "../../src/cache/recompress/nar_encoder.ts";
import { decompress } from "./decompressors.ts";
import { storedZstd } from "./stored_frames.ts";

/** Writes zstd in the process itself, where the runtime cannot. */
export class StubEncoder implements NarEncoder {
  readonly orders: EncodeOrder[] = [];
  /** Changes the encoded bytes, or throws in place of them. */
  fault: (file: Bytes) => Bytes = (file) => file;
  /** Called before each piece. */
  onPiece: () => void = () => undefined;

  start(order: EncodeOrder): NarEncoding {
    this.orders.push(order);
    const pieces: Bytes[] = [];
    const ended = Promise.withResolvers<void>();
    const encode = async () => {
      await ended.promise;
      const nar = await decompress(
        new Uint8Array(await new Blob(pieces).arrayBuffer()),
        order.compression,
      );
      const file = this.fault(storedZstd(nar));
      Deno.writeFileSync(order.path, file, { createNew: true });
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
        this.onPiece();
        pieces.push(bytes);
      },
      end: () => ended.resolve(),
      [Symbol.dispose]: () => ended.reject(new Error("ended early")),
    };
  }
}
