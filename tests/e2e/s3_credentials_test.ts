import assert from "node:assert/strict";
import { ExactServer } from "../support/exact_server.ts";
import { startLarder } from "../support/larder_process.ts";
import { testUnless } from "../support/program.ts";
import { S3_KEYS, S3_UNAVAILABLE, s3Flags, S3Server } from "../support/s3_server.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { textAnswer } from "../support/upstream_answers.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

const { accessKeyId, secretAccessKey } = S3_KEYS;

/** No metadata of the machine that runs the tests. */
const ALONE = { AWS_EC2_METADATA_DISABLED: "true" };

testUnless(S3_UNAVAILABLE, "S3: credentials come from the environment", async () => {
  const environment = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
  await assertStarts(environment);
});

testUnless(S3_UNAVAILABLE, "S3: credentials come from the SDK's file", async () => {
  using folder = tempFolder();
  const file = `${folder.path}/credentials`;
  const lines = [
    `aws_access_key_id = ${accessKeyId}`,
    `aws_secret_access_key = ${secretAccessKey}`,
  ];
  Deno.writeTextFileSync(file, `[default]\n${lines.join("\n")}\n`);
  await assertStarts({ AWS_SHARED_CREDENTIALS_FILE: file });
});

testUnless(S3_UNAVAILABLE, "S3: credentials come from the role of a container", async () => {
  const role = JSON.stringify({
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    Token: "",
    Expiration: new Date(Date.now() + 3_600_000).toISOString(),
  });
  await using metadata = new ExactServer(async () => textAnswer(200, role, "application/json"));
  const url = `http://127.0.0.1:${metadata.port}/role`;
  await assertStarts({ AWS_CONTAINER_CREDENTIALS_FULL_URI: url });
});

testUnless(S3_UNAVAILABLE, "S3: credentials come from the metadata of a machine", async () => {
  const role = JSON.stringify({
    Code: "Success",
    Type: "AWS-HMAC",
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    Token: "",
    LastUpdated: new Date().toISOString(),
    Expiration: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const session = "a-session-of-the-metadata";
  const folder = "/latest/meta-data/iam/security-credentials/";
  const asked: string[] = [];
  await using metadata = new ExactServer(async ({ method, path, headers }) => {
    asked.push(`${method} ${path}`);
    if (`${method} ${path}` === "PUT /latest/api/token") return textAnswer(200, session);
    if (headers.get("x-aws-ec2-metadata-token") !== session) return textAnswer(401, "");
    if (path === folder) return textAnswer(200, "role-of-larder");
    return path === `${folder}role-of-larder` ? textAnswer(200, role) : textAnswer(404, "");
  });
  const url = `http://127.0.0.1:${metadata.port}`;
  const environment = { AWS_EC2_METADATA_DISABLED: "false" };
  await assertStarts({ ...environment, AWS_EC2_METADATA_SERVICE_ENDPOINT: url });
  assert.ok(asked.includes(`GET ${folder}role-of-larder`), `${asked}`);
});

testUnless(
  S3_UNAVAILABLE,
  "S3: without any credentials the start ends, with what to do",
  async () => {
    await assert.rejects(
      assertStarts({}),
      /; give --cache-storage-s3-access-key-id and its secret/,
    );
  },
);

/** Starting lists, writes and removes an object. */
async function assertStarts(environment: Readonly<Record<string, string>>): Promise<void> {
  if (server === undefined) throw new Error("Cannot start: there is no server");
  const flags = s3Flags({ ...server.bucket(), credentials: undefined });
  await using larder = await startLarder(flags, { ...ALONE, ...environment });
  assert.ok(larder.url);
}
