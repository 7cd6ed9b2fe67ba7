import assert from "node:assert/strict";
import { Importer } from "../../../src/cache/import/importer.ts";
import type { ImportSource } from "../../../src/cache/import/import_source.ts";
import { TrustedKeys } from "../../../src/nix/trusted_keys.ts";

Deno.test("import: a signal ends it at once, while the other cache does not answer", async () => {
  const asked = Promise.withResolvers<void>();
  const source: ImportSource = {
    entryCount: 1,
    async *entries() {
      asked.resolve();
      await new Promise<never>(() => undefined);
      yield { name: "never", problem: "never" };
    },
    pins: () => [],
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const stop = new AbortController();
  const nothing = {} as never;
  const importer = new Importer(
    {
      ...{ metadata: nothing, kept: nothing, nars: nothing, narinfos: nothing },
      trust: { keys: new TrustedKeys([]), isRequired: true },
      entriesAtOnce: 2,
    },
    { progress: () => undefined, broken: () => assert.fail("nothing came") },
    stop.signal,
  );
  const run = importer.run(source);
  await asked.promise;
  stop.abort();
  assert.equal((await run).entriesDone, 0);
});
