import type { Kind } from "./option.ts";

// Today's rules, and those for old buckets and of other makers' stores:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
const BUCKET_NAME_REGEXP = /^[A-Za-z0-9][A-Za-z0-9._-]{2,254}$/;

/** The name of an S3 bucket. */
export const bucketName: Kind<string> = {
  placeholder: "BUCKET",
  parse(given) {
    if (BUCKET_NAME_REGEXP.test(given)) return given;
    throw new Error(
      "the name of a bucket: 3 to 255 letters, digits, dots, hyphens and underscores, with a " +
        "letter or digit first",
    );
  },
  print: (value) => value,
};
