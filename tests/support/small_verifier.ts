import type { NarMeasure, NarVerifier, VerifyOrder } from "../../src/cache/verify/nar_verifier.ts";
import { parseNarName } from "../../src/nix/nar_name.ts";
import { measuredFile } from "./measured_file.ts";
import { turns } from "./mortal_life.ts";
import { narNamed } from "./small_world.ts";

/** The verifier of a small world: it reads uncompressed files, and knows the NARs of the others. */
export class SmallVerifier implements NarVerifier {
  start(order: VerifyOrder) {
    const { promise, resolve, reject } = Promise.withResolvers<NarMeasure>();
    promise.catch(() => undefined);
    return {
      measure: promise,
      grown(fileSize: number, whole: boolean) {
        if (whole) turns(2).then(() => measureOf(order, fileSize)).then(resolve, reject);
      },
      [Symbol.dispose]: () => reject(new Error("it was ended")),
    };
  }

  /** A small world uploads no encoded bodies. */
  decode(): Promise<never> {
    throw new Error("Cannot decode a body");
  }

  /** Never resolves: the file hash decides before. */
  passThrough() {
    const measure = new Promise<never>(() => undefined);
    return { measure, write: () => Promise.resolve(), end() {}, [Symbol.dispose]() {} };
  }
}

function measureOf({ path, compression, narSizeMax }: VerifyOrder, fileSize: number): NarMeasure {
  if (compression !== "none") {
    const name = parseNarName(/[^/]*\.nar(?:\.xz)?/.exec(path)?.[0] ?? "");
    if (name === undefined) throw new Error(`Cannot find a NAR's name in ${path}`);
    const { narDigest: digest, bytes } = narNamed(name);
    return { kind: "measured", digest, narSize: bytes.length };
  }
  const measure = measuredFile(path);
  if (measure.narSize < fileSize) throw new Error(`${path} is too short`);
  return measure.narSize > narSizeMax ? { kind: "undecodable", detail: "too large" } : measure;
}
