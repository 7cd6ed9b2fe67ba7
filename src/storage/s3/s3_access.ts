import { S3Client } from "@aws-sdk/client-s3";
import { FetchHttpHandler } from "@smithy/fetch-http-handler";
import { addFileHash } from "./file_part.ts";
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

export function openS3(place: S3Place): S3Access {
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
  return { client, bucket };
}
