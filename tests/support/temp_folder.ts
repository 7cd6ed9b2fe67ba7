/** A folder that goes when the test's scope ends. */
export function tempFolder(): Disposable & { readonly path: string } {
  const path = Deno.makeTempDirSync({ prefix: "larder-test-" });
  return { path, [Symbol.dispose]: () => Deno.removeSync(path, { recursive: true }) };
}
