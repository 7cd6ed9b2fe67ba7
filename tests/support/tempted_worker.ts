// A Worker that tries the rights of its thread, and names those that Deno did not refuse.
import { workerScope } from "../../src/base/worker_scope.ts";

const ATTEMPTS: Readonly<Record<string, (path: string) => unknown>> = {
  read: (path) => Deno.readTextFileSync(path),
  write: (path) => Deno.writeTextFileSync(path, ""),
  net: () => Deno.listen({ hostname: "127.0.0.1", port: 0 }).close(),
  env: () => Deno.env.get("HOME"),
  sys: () => Deno.hostname(),
  run: () => new Deno.Command("sh").outputSync(),
};

const scope = workerScope<string, readonly string[]>();

scope.onmessage = ({ data: path }) =>
  scope.postMessage(
    Object.entries(ATTEMPTS).filter(([, attempt]) => isAllowed(() => attempt(path)))
      .map(([name]) => name),
  );

function isAllowed(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return false;
    throw error;
  }
}
