import { boolean, bucketName, path, text } from "../kinds/plain.ts";
import { databaseUrl } from "../kinds/database_url.ts";
import { httpUrl } from "../kinds/upstream_url.ts";
import { type DefaultInputs, namesOf, type OptionTable } from "../kinds/option.ts";

/** Options of the storage for NAR files and metadata. */
export const STORAGE_OPTIONS = {
  "cache.storage-local": {
    kind: path,
    computed: stateDirectory,
    shown: "$STATE_DIRECTORY, else $XDG_STATE_HOME/larder, else ./larder-data",
    help: "Directory for NAR files, database, signing key and partial files",
    details: "With an S3 bucket the NAR files go there, and the rest stays here.",
    also: [{ key: "cache.storage.local" }, namesOf("cache.data-path")],
  },
  "cache.storage-s3-bucket": {
    kind: bucketName,
    shown: "none: NAR files stay in the directory",
    example: "nix-cache",
    help: "S3 bucket for NAR files",
    details: "larder writes and removes objects below nar/ in it. The bucket must exist.",
    also: [{ key: "cache.storage.s3.bucket" }],
  },
  "cache.storage-s3-endpoint": {
    kind: httpUrl,
    shown: "Amazon's, for the region",
    example: "https://s3.example.org",
    help: "URL of the S3 store",
    also: [{ key: "cache.storage.s3.endpoint" }],
  },
  "cache.storage-s3-region": {
    kind: text,
    computed: ({ variable }) =>
      variable("AWS_REGION") ?? variable("AWS_DEFAULT_REGION") ?? "us-east-1",
    shown: "$AWS_REGION, else $AWS_DEFAULT_REGION, else us-east-1",
    help: "Region of the bucket",
    also: [{ key: "cache.storage.s3.region" }],
  },
  "cache.storage-s3-access-key-id": {
    kind: text,
    secret: true,
    example: "AKIAEXAMPLE",
    shown: "$AWS_ACCESS_KEY_ID, else ~/.aws, else the role of the container or machine",
    help: "Access key for the S3 store",
    also: [{ key: "cache.storage.s3.access-key-id" }],
  },
  "cache.storage-s3-secret-access-key": {
    kind: text,
    secret: true,
    example: "SECRET",
    shown: "as for the access key",
    help: "Secret of the access key",
    also: [{ key: "cache.storage.s3.secret-access-key" }],
  },
  "cache.storage-s3-force-path-style": {
    kind: boolean,
    default: false,
    help: "Put the bucket into the path of each URL, not into the host",
    details: "Most stores other than Amazon's need it.",
    also: [{ key: "cache.storage.s3.force-path-style" }],
  },
  "cache.storage-s3-redirect": {
    kind: boolean,
    default: false,
    help: "Answer GET of a whole stored NAR with a redirect to the S3 store",
    details: "The URL is valid for five minutes, without a token. Clients must reach the store.",
  },
  "cache.database-url": {
    kind: databaseUrl,
    computed: ({ textOf }) => ({
      kind: "sqlite" as const,
      path: `${textOf("cache.storage-local").replace(/\/+$/, "")}/db.sqlite`,
    }),
    shown: "sqlite: and db.sqlite in the directory of cache.storage-local",
    help: "Database: sqlite: and a path, or postgres://USER@HOST/NAME",
    details: "PostgreSQL 15 or newer, for several larders on one storage; a database of its own.",
  },
  "cache.database-password": {
    kind: text,
    secret: true,
    example: "SECRET",
    shown: "that of the URL, else that of $PGPASSFILE",
    help: "Password for PostgreSQL",
  },
} as const satisfies OptionTable;

function stateDirectory({ variable }: DefaultInputs): string {
  // systemd separates several directories by colons; the first one is for a program's data.
  const fromSystemd = variable("STATE_DIRECTORY")?.split(":")[0];
  if (fromSystemd) return fromSystemd;
  const stateHome = variable("XDG_STATE_HOME");
  // The XDG specification ignores relative paths.
  return stateHome?.startsWith("/") ? `${stateHome.replace(/\/+$/, "")}/larder` : "./larder-data";
}
