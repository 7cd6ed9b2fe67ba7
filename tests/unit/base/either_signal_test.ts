import assert from "node:assert/strict";
import { EitherSignal } from "../../../src/base/either_signal.ts";
import { tempFolder } from "../../support/temp_folder.ts";

Deno.test("either signal: it fires once, with the reason of the first", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const either = new EitherSignal(one.signal, other.signal);
  let fired = 0;
  either.signal.addEventListener("abort", () => fired++);
  other.abort("other");
  one.abort("one");
  assert.deepEqual([fired, either.signal.reason], [1, "other"]);
});

Deno.test("either signal: one that has fired counts, and a disposed one never fires", () => {
  assert.equal(
    new EitherSignal(new AbortController().signal, AbortSignal.abort(7)).signal.reason,
    7,
  );
  const source = new AbortController();
  const either = new EitherSignal(source.signal);
  either[Symbol.dispose]();
  source.abort();
  assert.equal(either.signal.aborted, false);
});

Deno.test("either signal: no collection of garbage loses an abort", async () => {
  const code = `
    import { EitherSignal } from ${
    JSON.stringify(import.meta.resolve("../../../src/base/either_signal.ts"))
  };
    const sources = Array.from({ length: 100 }, () => new AbortController());
    let fired = 0;
    for (const { signal } of sources) {
      const either = new EitherSignal(signal, new AbortController().signal).signal;
      either.addEventListener("abort", () => fired++);
    }
    gc();
    await new Promise((resolve) => setTimeout(resolve, 0));
    gc();
    for (const source of sources) source.abort();
    console.log(fired);
  `;
  using folder = tempFolder();
  const path = `${folder.path}/collect.ts`;
  Deno.writeTextFileSync(path, code);
  const args = ["run", "--no-check", "--no-config", "--v8-flags=--expose-gc", path];
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
  assert.equal(new TextDecoder().decode(stdout).trim(), "100", new TextDecoder().decode(stderr));
});
