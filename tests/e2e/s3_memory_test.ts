import assert from "node:assert/strict";
import { testUnless } from "../support/program.ts";
import { S3_UNAVAILABLE, S3Server } from "../support/s3_server.ts";

const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;

/** Nightly runs have 2 GiB. */
const MEBIBYTES = Number(Deno.env.get("LARGE_NAR_MIB") ?? 512);
const MORE_BYTES_MAX = 64e6;

/** Stored names of a small NAR file and of a large one. */
const NAMES = ["0", "1"].map((digit) => `${digit.repeat(52)}.nar.xz.${digit.repeat(16)}`);

const place = JSON.stringify(server?.bucket());

testUnless(S3_UNAVAILABLE, "S3: a large NAR takes under 64 MB more than a small one", async () => {
  await assertSmall("s3_put_process.ts", [String(MEBIBYTES), ...NAMES]);
});

testUnless(S3_UNAVAILABLE, "S3: a slow client of a large NAR takes under 64 MB more", async () => {
  // The test before has put it there.
  await assertSmall("s3_read_process.ts", NAMES);
});

/** Fails unless a process handles the large file with little more memory than the small one. */
async function assertSmall(program: string, words: readonly string[]): Promise<void> {
  const path = new URL(`../support/${program}`, import.meta.url).pathname;
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--no-check", "--cached-only", "--v8-flags=--max-semi-space-size=2", "-A"],
      ...[path, place, ...words],
    ],
  }).output();
  const moreBytes = new TextDecoder().decode(stdout).trim();
  assert.match(moreBytes, /^\d+$/, new TextDecoder().decode(stderr));
  assert.ok(Number(moreBytes) < MORE_BYTES_MAX, `${moreBytes} bytes`);
}
