import { S3ServiceException } from "@aws-sdk/client-s3";
import { Failure, messageOf } from "../../base/failure.ts";
import { STORAGE } from "../../telemetry/events.ts";

/** True where something is not there: the object, or the bucket. */
export function isNotFound(error: unknown): boolean {
  return error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404;
}

/** True where the store says that the object alone is not there. */
export function isNoSuchKey(error: unknown): boolean {
  return isNotFound(error) && (error as S3ServiceException).name === "NoSuchKey";
}

/** True where the object has another ETag than the one that was opened. */
export function isChanged(error: unknown): boolean {
  return error instanceof S3ServiceException && error.$metadata.httpStatusCode === 412;
}

/** The failure of one operation. "unavailable": no row and no object is wrong. */
export function s3Failure(action: string, error: unknown): Failure {
  return new Failure(
    "unavailable",
    `Cannot ${action}: ${s3Reason(error)}`,
    { part: STORAGE },
    error,
  );
}

/** The reason without keys and addresses of requests. */
export function s3Reason(error: unknown): string {
  if (!(error instanceof S3ServiceException)) return messageOf(error);
  const status = error.$metadata.httpStatusCode;
  return `the S3 store answered ${status ?? "nothing"} (${error.name})`;
}
