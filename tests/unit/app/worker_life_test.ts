import { WORKER_THREADS } from "../../../src/runtime/threads.ts";
import assert from "node:assert/strict";
import { JobWorker } from "../../../src/app/workers/job_worker.ts";
import type { FromNarinfoWorker, ToNarinfoWorker } from "../../../src/app/workers/messages.ts";
import { WorkerLife } from "../../../src/app/workers/worker_narinfos.ts";

Deno.test("narinfo Worker: where the system refuses its thread, larder goes on without it", () => {
  const real = globalThis.Worker;
  using _worker = { [Symbol.dispose]: () => void (globalThis.Worker = real) };
  globalThis.Worker = class {
    constructor() {
      throw new Error("no more threads");
    }
  } as unknown as typeof Worker;
  using worker = new JobWorker<ToNarinfoWorker, FromNarinfoWorker>({
    threads: WORKER_THREADS,
    url: new URL("file:///nowhere.ts"),
    died: (id, detail) => ({ id, type: "died", detail }),
  });
  const lost: string[] = [];
  using life = new WorkerLife(worker, (error) => lost.push(error));

  const taken = Array.from({ length: 40 }, () => life.takes());

  assert.ok(!taken.includes(true));
  assert.deepEqual(lost, ["no more threads"]);
});
