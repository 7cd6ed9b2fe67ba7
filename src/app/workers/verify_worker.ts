// The thread that decompresses and hashes NARs.
import { messageOf } from "../../base/failure.ts";
import { Growth, measureNar } from "../../cache/verify/measure_nar.ts";
import type { VerifyOrder } from "../../cache/verify/nar_verifier.ts";
import type { FromVerifyWorker, ToVerifyWorker } from "./messages.ts";
import { workerScope } from "./worker_scope.ts";

const scope = workerScope<ToVerifyWorker, FromVerifyWorker>();

const underWay = new Map<number, Growth>();

scope.onmessage = ({ data }) => {
  switch (data.type) {
    case "verify":
      return void run(data.id, data.order);
    case "grown":
      return underWay.get(data.id)?.grown(data.fileSize, data.whole);
    case "cancel":
      return underWay.get(data.id)?.end();
  }
};

async function run(id: number, order: VerifyOrder): Promise<void> {
  const growth = new Growth();
  underWay.set(id, growth);
  const tell = (message: FromVerifyWorker) => scope.postMessage(message);
  try {
    tell({ id, measure: await measureNar(order, growth) });
  } catch (error) {
    tell({ id, error: messageOf(error) });
  } finally {
    underWay.delete(id);
  }
}
