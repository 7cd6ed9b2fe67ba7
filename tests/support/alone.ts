import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Waits until no other process of this machine holds the same name, and holds it until disposed.
 * For tests that take much of something that the whole machine shares.
 */
export async function alone(name: string): Promise<Disposable> {
  const path = join(tmpdir(), `larder-test-${name}`);
  const file = await Deno.open(path, { create: true, write: true });
  // The system lets go of it, too, when the process ends.
  await file.lock(true);
  return { [Symbol.dispose]: () => file.close() };
}
