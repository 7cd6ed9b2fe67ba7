import { S3Client } from "@aws-sdk/client-s3";
import { FetchHttpHandler } from "@smithy/fetch-http-handler";
import type { OperationOf } from "../../telemetry/instruments/operation_labels.ts";
import type { OperationMeter } from "../../telemetry/metrics.ts";
import { addFileHash } from "./file_part.ts";
import { isChanged, isNotFound } from "./s3_failures.ts";
import { boundedBytes } from "../../base/bounded_text.ts";
import { EitherSignal } from "../../base/either_signal.ts";
import { messageOf } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";

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

/** The longest wait for the head of a response without a body in its request. */
const HEAD_MAX_MS = 5_000;

/** The same where the body of a request comes first, or parts become an object. */
const WRITE_HEAD_MAX_MS = 60_000;

/** Every answer but the bytes of a NAR: a page of 1,000 keys has half a MiB. */
const TEXT_BYTES_MAX = 8 << 20;

/** Time for such an answer. While a store joins parts, it sends spaces. */
const TEXT_MAX_MS = 600_000;

/** The SDK retries errors with this mark. It knows the errors of browsers and Node, not Deno's. */
class NoResponse extends Error {
  readonly $retryable = {};
}

/**
 * `fetch` for the SDK: with limits for the response's head and for all but the bytes of a NAR, and
 * with errors that it retries.
 */
async function s3Fetch(given: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  // Another request would copy the body.
  const request = given instanceof Request ? given : new Request(given, init);
  const response = await head(request);
  // larder reads NARs by ranges alone.
  const isNar = request.headers.has("range") && response.ok;
  if (isNar || response.body === null) return response;
  const bounds = { bytesMax: TEXT_BYTES_MAX, limitMs: TEXT_MAX_MS };
  const { status, statusText, headers } = response;
  return new Response(await boundedBytes(response, bounds), { status, statusText, headers });
}

async function head(request: Request): Promise<Response> {
  const isWrite = request.method === "PUT" || request.method === "POST";
  const limitMs = isWrite ? WRITE_HEAD_MAX_MS : HEAD_MAX_MS;
  using deadline = clock.deadline(limitMs);
  const { signal: late } = deadline;
  try {
    return await fetch(request, { signal: new EitherSignal(request.signal, late).signal });
  } catch (error) {
    request.signal.throwIfAborted();
    throw new NoResponse(messageOf(late.aborted ? late.reason : error), { cause: error });
  }
}
