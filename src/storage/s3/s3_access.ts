import { S3Client } from "@aws-sdk/client-s3";
import { FetchHttpHandler } from "@smithy/fetch-http-handler";
import type { OperationOf } from "../../telemetry/instruments/operation_labels.ts";
import type { OperationMeter } from "../../telemetry/operation_meter.ts";
import { addFileHash } from "./file_part.ts";
import { isChanged, isNotFound } from "./s3_failures.ts";
import { s3Fetch } from "./s3_fetch.ts";

/** The bucket with the NAR files, and the keys to it. A message to a Worker can hold it. */
export interface S3Place {
  readonly bucket: string;
  /** `undefined`: Amazon's own. */
  readonly endpoint: string | undefined;
  readonly region: string;
  /** `undefined`: the SDK looks in the environment, its files and the instance's metadata. */
  readonly credentials: S3Credentials | undefined;
  /** The bucket is the first segment of the path, not a part of the host. */
  readonly forcePathStyle: boolean;
}

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** The client of one bucket. */
export interface S3Access {
  readonly client: S3Client;
  readonly bucket: string;
}

/** One request and two retries, each after a longer random pause. */
const ATTEMPTS_MAX = 3;

export type S3Meter = OperationMeter<OperationOf<"storage">>;

/** A `meter` counts the requests, each with its retries. Default: nobody counts. */
export function openS3(place: S3Place, meter?: S3Meter): S3Access {
  const { bucket, endpoint, region, credentials, forcePathStyle } = place;
  const client = new S3Client({
    region,
    forcePathStyle,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    maxAttempts: ATTEMPTS_MAX,
    // The default handler hangs on Deno 2.6.8 in an upload by parts.
    requestHandler: new FetchHttpHandler({ customFetch: s3Fetch }),
    // Signatures cover the bodies already. Other makers' servers refuse the newer checksums.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    // The default reads the release of the operating system, which needs a permission.
    defaultUserAgentProvider: () => Promise.resolve([["larder"]]),
  });
  const hashing = { step: "build" } as const;
  client.middlewareStack.add((next) => (args) => {
    addFileHash(args.request);
    return next(args);
  }, hashing);
  if (meter !== undefined) meterRequests(client, meter);
  return { client, bucket };
}

/** Operations by the name of the SDK's command. All others write. */
const OPERATIONS: Readonly<Record<string, OperationOf<"storage">>> = {
  HeadObjectCommand: "open",
  GetObjectCommand: "read",
  DeleteObjectCommand: "remove",
  AbortMultipartUploadCommand: "remove",
  ListObjectsV2Command: "list",
  ListMultipartUploadsCommand: "list",
  ListPartsCommand: "list",
};

interface SendOptions {
  readonly abortSignal?: AbortSignal;
}

/** A request ends with the head of its answer: a body lasts as long as its reader. */
function meterRequests(client: S3Client, meter: S3Meter): void {
  const send = client.send.bind(client) as (
    command: object,
    options?: SendOptions,
  ) => Promise<unknown>;
  const metered: typeof send = (command, options) => {
    const facts = { signal: options?.abortSignal, isAnswer };
    return meter.run(
      OPERATIONS[command.constructor.name] ?? "write",
      () => send(command, options),
      facts,
    );
  };
  client.send = metered as S3Client["send"];
}

function isAnswer(error: unknown): boolean {
  return isNotFound(error) || isChanged(error);
}
