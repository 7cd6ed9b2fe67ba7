import { Failure } from "../base/failure.ts";
import type { InputRecord } from "../config/recorded_inputs.ts";
import type { Settings } from "../config/options.ts";
import { confinedTo, neededFiles } from "./confinement.ts";
import type { FromServerWorker } from "./workers/messages.ts";

const ALL = ["run", "ffi", "write", "read", "net", "sys", "env"] as const;

/**
 * Runs the server with the permissions that these settings need. Deno can narrow the permissions of
 * a Worker, not those of a thread that runs. So the server is a Worker, and this thread gives up
 * all of its own for good. `record` is what the settings were read from, as a Worker takes no
 * settings. Like `serve`, it resolves to the exit status.
 */
export async function serveConfined(settings: Settings, record: InputRecord): Promise<number> {
  const worker = new Worker(new URL("./server_worker.ts", import.meta.url), {
    type: "module",
    deno: { permissions: confinedTo(neededFiles(settings, variable)) },
  });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  worker.onmessage = ({ data }: MessageEvent<FromServerWorker>) => {
    if ("loaded" in data) return begin();
    if ("status" in data) resolve(data.status);
    else reject(failureOf(data));
  };
  worker.onerror = (event) => {
    event.preventDefault();
    reject(new Error(event.message));
  };
  return await promise;

  // Loading the Worker's code needs this thread's permissions.
  function begin(): void {
    for (const name of ALL) Deno.permissions.revokeSync({ name });
    worker.postMessage(record);
  }
}

const variable = (name: string) => Deno.env.get(name) || undefined;

/** A failure of the server as this thread's own; with a stack it is a bug. */
function failureOf({ failure, stack }: Extract<FromServerWorker, { failure: string }>): Error {
  if (stack === undefined) return new Failure("broken", failure);
  const error = new Error(failure);
  error.stack = stack;
  return error;
}
