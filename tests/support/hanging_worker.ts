// A Worker of narinfos that starts as it should, and hangs at its first narinfo.
import type { FromNarinfoWorker, ToNarinfoWorker } from "../../src/app/workers/messages.ts";
import { workerScope } from "../../src/base/worker_scope.ts";

const scope = workerScope<ToNarinfoWorker, readonly FromNarinfoWorker[]>();

scope.onmessage = ({ data }) => {
  if (data.type === "start") return;
  for (const { type, id } of data.orders) {
    if (type === "ping") scope.postMessage([{ id, type: "pong" }]);
    // Nothing ends this loop but the end of the Worker.
    while (type === "fetch");
  }
};
