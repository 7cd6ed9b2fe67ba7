import {
  DeleteObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { Failure, messageOf } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";
import type { S3Access } from "./s3_access.ts";
import { isNoSuchKey, s3Reason } from "./s3_failures.ts";
import { NAR_PREFIX } from "./s3_object.ts";

/** The longest wait at a start for a store that does not answer. */
const CHECK_MAX_MS = 5_000;

const UNKNOWN_KEY = "give a key of that store with --cache-storage-s3-access-key-id";

/** Remedies if the store refuses, by the name of its error. */
const HINTS: Readonly<Record<string, string>> = {
  NoSuchBucket: "make the bucket, or give another with --cache-storage-s3-bucket",
  InvalidAccessKeyId: UNKNOWN_KEY,
  // The error code of versitygw.
  XAdminUserNotFound: UNKNOWN_KEY,
  SignatureDoesNotMatch: "give the key's secret with --cache-storage-s3-secret-access-key",
  AccessDenied: "allow the key to list the bucket, and to read, write and delete below nar/",
  PermanentRedirect: "give the bucket's region with --cache-storage-s3-region",
  AuthorizationHeaderMalformed: "give the bucket's region with --cache-storage-s3-region",
  IllegalLocationConstraintException: "give its region with --cache-storage-s3-region",
  CredentialsProviderError: "give --cache-storage-s3-access-key-id and its secret, or a role",
};

/**
 * Lists, writes and removes in the bucket. Throws a Failure that names the remedy. False for a
 * store that does not answer: it may come back.
 */
export async function checkBucket({ client, bucket }: S3Access): Promise<boolean> {
  using deadline = clock.deadline(CHECK_MAX_MS);
  const options = { abortSignal: deadline.signal };
  // The next start removes the object of a killed one: the name is always the same.
  const probe = { Bucket: bucket, Key: `${NAR_PREFIX}.writable` };
  const list = new ListObjectsV2Command({ Bucket: bucket, Prefix: NAR_PREFIX, MaxKeys: 1 });
  try {
    await client.send(list, options);
    await client.send(new PutObjectCommand({ ...probe, Body: new Uint8Array(1) }), options);
    await client.send(new DeleteObjectCommand(probe), options).catch((error) => {
      // Another larder that starts may have removed it.
      if (!isNoSuchKey(error)) throw error;
    });
    return true;
  } catch (error) {
    const hint = error instanceof Error ? HINTS[error.name] : undefined;
    const isRefused = error instanceof S3ServiceException && error.$fault === "client";
    if (hint === undefined && !isRefused) return false;
    const reason = error instanceof S3ServiceException ? s3Reason(error) : messageOf(error);
    const sentence = `Cannot use S3 bucket ${bucket}: ${reason}`;
    throw new Failure("broken", hint === undefined ? sentence : `${sentence}; ${hint}`, {}, error);
  }
}
