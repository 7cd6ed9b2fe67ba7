import type { HeadObjectCommandOutput } from "@aws-sdk/client-s3";
import { publishIdOf, type Seal, type StoredName } from "../../nix/stored_name.ts";

/** Prefix of the keys of all NAR files. */
export const NAR_PREFIX = "nar/";

/** An object of the bucket, as it was at one moment. */
export interface S3Object {
  readonly key: string;
  /** ETag of these very bytes. */
  readonly etag: string;
  readonly fileSize: number;
  readonly seal: Seal;
}

export function keyOf(at: StoredName): string {
  return NAR_PREFIX + at;
}

/** Throws for an answer without an ETag or a size, which every S3 store sends. */
export function s3Object(
  at: StoredName,
  { ETag: etag, ContentLength: fileSize }: HeadObjectCommandOutput,
): S3Object {
  if (etag === undefined || fileSize === undefined) {
    throw new Error("the S3 store sent no ETag, or no size");
  }
  return { key: keyOf(at), etag, fileSize, seal: s3SealOf(at, etag, fileSize) };
}

/** ETags of equal bytes may be equal: the id names the object. */
export function s3SealOf(at: StoredName, etag: string, fileSize: number): Seal {
  return `${publishIdOf(at)}-${etag.replaceAll('"', "")}-${fileSize}` as Seal;
}
