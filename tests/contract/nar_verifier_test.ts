import { WORKER_THREADS } from "../../src/runtime/threads.ts";
import { VerifyThread } from "../../src/app/workers/verify_thread.ts";
import { WorkerVerifier } from "../../src/app/workers/worker_verifier.ts";
import { MemoryAllowance } from "../../src/base/memory_allowance.ts";
import type { NarVerifier } from "../../src/cache/verify/nar_verifier.ts";
import { SmallVerifier } from "../support/small_verifier.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { checkContract } from "./contract.ts";
import { narVerifierClauses, verifyThreadClauses } from "./nar_verifier_contract.ts";

const GROWING_BYTES_MAX = 256 << 20;

const FILES = ["shelf.nar.xz", "shelf.nar", "shelf.nar.zst"] as const;

const threads: Readonly<Record<string, () => NarVerifier & Disposable>> = {
  VerifyThread: () => new VerifyThread(WORKER_THREADS, new MemoryAllowance(GROWING_BYTES_MAX)),
  "VerifyThread without memory for growing files": () =>
    new VerifyThread(WORKER_THREADS, new MemoryAllowance(0)),
  WorkerVerifier: () => new WorkerVerifier(WORKER_THREADS, 2),
};

for (const [name, openThreads] of Object.entries(threads)) {
  const harness = {
    name,
    open: async () => {
      const opened = new AsyncDisposableStack();
      const folder = opened.use(tempFolder()).path;
      const verifier = opened.use(openThreads());
      return {
        ...{ verifier, folder, files: FILES },
        end: () => verifier[Symbol.dispose](),
        [Symbol.asyncDispose]: () => opened.disposeAsync(),
      };
    },
  };
  checkContract(harness, narVerifierClauses);
  checkContract(harness, verifyThreadClauses);
}

/** File hashes decide on what it passes through, and it has no thread. */
checkContract({
  name: "SmallVerifier",
  open: async () => {
    const folder = tempFolder();
    return {
      ...{ verifier: new SmallVerifier(), folder: folder.path, files: ["shelf.nar"] as const },
      [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
    };
  },
}, narVerifierClauses);
