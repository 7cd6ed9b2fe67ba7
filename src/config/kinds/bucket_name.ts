import type { Kind } from "./option.ts";

// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
const BUCKET_NAME_REGEXP = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** The name of an S3 bucket. */
export const bucketName: Kind<string> = {
  placeholder: "BUCKET",
  parse(given) {
    if (BUCKET_NAME_REGEXP.test(given)) return given;
    throw new Error(
      "the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens, with a letter " +
        "or digit at each end",
    );
  },
  print: (value) => value,
};
