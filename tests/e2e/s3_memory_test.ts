import assert from "node:assert/strict";
import { testUnless } from "../support/program.ts";
import { S3_UNAVAILABLE, S3Server } from "../support/s3_server.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

const MEBIBYTES = 512;
const MORE_BYTES_MAX = 64e6;
const PROGRAM = new URL("../support/s3_put_process.ts", import.meta.url).pathname;

testUnless(S3_UNAVAILABLE, "S3: a large NAR takes under 64 MB more than a small one", async () => {
  const place = JSON.stringify(server?.bucket());
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--no-check", "--cached-only", "--v8-flags=--max-semi-space-size=2", "-A"],
      ...[PROGRAM, place, String(MEBIBYTES)],
    ],
  }).output();
  const moreBytes = new TextDecoder().decode(stdout).trim();
  assert.match(moreBytes, /^\d+$/, new TextDecoder().decode(stderr));
  assert.ok(Number(moreBytes) < MORE_BYTES_MAX, `${moreBytes} bytes`);
});
