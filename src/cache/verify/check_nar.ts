import type { NarRow } from "../../metadata/metadata_store.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import { beginSpan, type OpenSpan, type Tracer } from "../../telemetry/tracer.ts";
import { announcedFileSize } from "../nar/nar_naming.ts";
import type { NarCount, NarMeasure } from "./nar_verifier.ts";

/** The upstream's bytes are not the announced ones. The reasons are label values. */
export class Mismatch extends Error {
  readonly reason: "file_size" | "file_hash" | "nar_size" | "nar_hash" | "undecodable";

  constructor(reason: Mismatch["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The known facts of a NAR file. */
type FileFacts = Pick<NarRow, "compression" | "narSize" | "fileSize"> & {
  readonly fileHash?: Sha256;
};

/** Throws a Mismatch where the file is not the announced one. */
export function checkFile(
  nar: FileFacts,
  { fileHash, fileSize }: { readonly fileHash: string; readonly fileSize: number },
): void {
  const expected = announcedFileSize(nar);
  if (expected !== undefined && expected !== fileSize) {
    throw new Mismatch("file_size", `the file has ${fileSize} bytes, not ${expected}`);
  }
  if (nar.fileHash !== undefined && nar.fileHash !== fileHash) {
    throw new Mismatch("file_hash", `the file's hash is ${fileHash}, not ${nar.fileHash}`);
  }
}

/** Throws a Mismatch where the file does not hold the signed NAR, as far as it was measured. */
export function checkNar(nar: NarRow, measure: NarMeasure | NarCount): void {
  if (measure.kind === "undecodable") throw new Mismatch("undecodable", measure.detail);
  const { narSize } = measure;
  const narHash = measure.kind === "counted" ? nar.narHash : sha256FromDigest(measure.digest);
  checkNarFacts(nar, { narHash, narSize });
}

/** Throws a Mismatch where these are not the signed facts of the NAR. */
export function checkNarFacts(
  nar: Pick<NarRow, "narHash" | "narSize">,
  { narHash, narSize }: { readonly narHash: Sha256; readonly narSize: number },
): void {
  if (narSize !== nar.narSize) {
    throw new Mismatch("nar_size", `the NAR has ${narSize} bytes, not ${nar.narSize}`);
  }
  if (narHash !== nar.narHash) {
    throw new Mismatch("nar_hash", `the NAR's hash is ${narHash}, not ${nar.narHash}`);
  }
}

/** Begins the span from the start of hashing a NAR to the check result. The caller ends it. */
export function verifySpan(
  tracer: Tracer,
  { compression }: { readonly compression: string },
): OpenSpan {
  return beginSpan(tracer, {
    name: "verify nar",
    facts: { "larder.nar.compression": compression },
  });
}
