import { WORKER_THREADS } from "../../../src/runtime/threads.ts";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { WorkerVerifier } from "../../../src/app/workers/worker_verifier.ts";
import { tempFolder } from "../../support/temp_folder.ts";

/** Hashing takes minutes; it is all holes. */
const LARGE_BYTES = 2 ** 38;
const SMALL_BYTES = 1 << 20;
const TEXT = "not much of a NAR";

/** Verifications that keep their threads' turns. */
function endless(verifier: WorkerVerifier, folder: string): void {
  const path = `${folder}/large`;
  Deno.writeTextFileSync(path, "");
  Deno.truncateSync(path, LARGE_BYTES);
  for (let at = 0; at < 3; at++) {
    const order = { path, compression: "none", narSizeMax: LARGE_BYTES } as const;
    const { measure, grown } = verifier.start(order);
    measure.catch(() => undefined);
    grown(LARGE_BYTES, true);
  }
}

async function digestOf(
  verifier: WorkerVerifier,
  folder: string,
  narSizeMax: number,
): Promise<Uint8Array> {
  const path = `${folder}/file`;
  Deno.writeTextFileSync(path, TEXT);
  using verification = verifier.start({ path, compression: "none", narSizeMax });
  verification.grown(TEXT.length, true);
  const measure = await verification.measure;
  assert.ok(measure.kind === "measured");
  return measure.digest;
}

const DIGEST = new Uint8Array(createHash("sha256").update(TEXT).digest());

for (
  const [promise, threads, narBytes] of [
    ["a small NAR passes large ones that wait for their turn", 1, SMALL_BYTES],
    ["a second thread takes a NAR that the first is too busy for", 2, LARGE_BYTES],
  ] as const
) {
  Deno.test({
    name: `verifier: ${promise}`,
    async fn() {
      using folder = tempFolder();
      using verifier = new WorkerVerifier(WORKER_THREADS, threads);
      endless(verifier, folder.path);
      assert.deepEqual(await digestOf(verifier, folder.path, narBytes), DIGEST);
    },
  });
}
