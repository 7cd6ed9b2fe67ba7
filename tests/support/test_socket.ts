import { tempFolder } from "./temp_folder.ts";

/**
 * The variable in which `scripts/test.ts` names the one path where a test may listen on a Unix
 * socket. From 2.9 on Deno wants each path of one among its permissions.
 */
export const SOCKET_VARIABLE = "TEST_SOCKET";

/** A path for a Unix socket; whatever stands there goes with the scope. */
export function testSocket(): Disposable & { readonly path: string } {
  const given = Deno.env.get(SOCKET_VARIABLE);
  if (given === undefined) {
    const folder = tempFolder();
    return { path: `${folder.path}/socket`, [Symbol.dispose]: () => folder[Symbol.dispose]() };
  }
  return {
    path: given,
    [Symbol.dispose]() {
      try {
        Deno.removeSync(given);
      } catch (error) {
        // Its server has removed it already.
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    },
  };
}
