// The thread that decompresses and hashes NARs.
import { Failure, messageOf } from "../../base/failure.ts";
import { MemoryAllowance } from "../../base/memory_allowance.ts";
import { Growth, measureNar } from "../../cache/verify/measure_nar.ts";
import type { PassedOrder, VerifyOrder } from "../../cache/verify/nar_verifier.ts";
import { PassedMeasure } from "../../cache/verify/passed_measure.ts";
import type { FromVerifyWorker, ToVerifyWorker } from "./messages.ts";
import { workerScope } from "../../base/worker_scope.ts";

const scope = workerScope<ToVerifyWorker, FromVerifyWorker>();

/** For files that are not kept, decompressed as they are passed on; most take 2 to 8 MiB. */
const PASSED_BYTES_MAX = 256 << 20;

const underWay = new Map<number, Growth>();
const passing = new Map<number, PassedMeasure>();
const passedMemory = new MemoryAllowance(PASSED_BYTES_MAX);
const tell = (message: FromVerifyWorker) => scope.postMessage(message);

scope.onmessage = ({ data }) => {
  switch (data.type) {
    case "verify":
      return void run(data.id, data.order);
    case "grown":
      return underWay.get(data.id)?.grown(data.fileSize, data.whole);
    case "pass":
      return void pass(data.id, data.order);
    case "piece":
      return void take(data.id, data.bytes);
    case "end":
      return passing.get(data.id)?.end();
    case "cancel":
      passing.get(data.id)?.abort();
      return underWay.get(data.id)?.end();
  }
};

async function pass(id: number, order: PassedOrder): Promise<void> {
  const passed = new PassedMeasure(order, passedMemory);
  passing.set(id, passed);
  try {
    tell({ id, measure: await passed.measure });
  } catch (error) {
    const isRefused = error instanceof Failure && error.kind === "unavailable";
    tell({ id, error: messageOf(error), ...(isRefused ? { isRefused } : {}) });
  } finally {
    passing.delete(id);
  }
}

async function take(id: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  await passing.get(id)?.write(bytes);
  tell({ id, taken: true });
}

async function run(id: number, order: VerifyOrder): Promise<void> {
  const growth = new Growth();
  underWay.set(id, growth);
  try {
    tell({ id, measure: await measureNar(order, growth) });
  } catch (error) {
    tell({ id, error: messageOf(error) });
  } finally {
    underWay.delete(id);
  }
}
