// The Worker that is the server. It has the permissions that its settings need; the main thread
// has none.
import { Failure, messageOf } from "../base/failure.ts";
import { workerScope } from "../base/worker_scope.ts";
import { type InputRecord, replayInputs } from "../config/recorded_inputs.ts";
import { readSettings } from "../config/settings.ts";
import { serve } from "./serve.ts";
import type { FromServerWorker } from "./workers/messages.ts";

const scope = workerScope<InputRecord, FromServerWorker>();

scope.onmessage = ({ data: record }) => void run(record);
scope.postMessage({ loaded: true });

async function run(record: InputRecord): Promise<void> {
  const exit = (status: number) => scope.postMessage({ status });
  try {
    const { settings } = await readSettings(replayInputs(record));
    exit(await serve(settings, exit));
  } catch (error) {
    const stack = error instanceof Error && !(error instanceof Failure) ? error.stack : undefined;
    scope.postMessage({ failure: messageOf(error), stack });
  }
}
