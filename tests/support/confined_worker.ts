// A Worker that tries what its thread may do: the names of what Deno did not refuse.
import { workerScope } from "../../src/base/worker_scope.ts";

/** Attempts by name: a path each, or what to run. */
export interface Attempts {
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly run: readonly string[];
}

const scope = workerScope<Attempts, readonly string[]>();

scope.onmessage = ({ data: { read, write, run } }) =>
  scope.postMessage([
    ...read.filter((path) => isAllowed(() => Deno.readTextFileSync(path))),
    ...write.filter((path) => isAllowed(() => Deno.writeTextFileSync(path, ""))),
    ...run.filter((program) => isAllowed(() => new Deno.Command(program).outputSync())),
  ]);

function isAllowed(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return false;
    throw error;
  }
}
