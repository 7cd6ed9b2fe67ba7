import assert from "node:assert/strict";
import { hashOfBaseName } from "../../src/nix/store_path.ts";
import { playRuntime } from "../../src/runtime/current.ts";
import { SystemClock } from "../../src/runtime/clock.ts";
import { hash } from "../support/metadata_rows.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { AS_WRITER, pushOf, said, uploadCache, uploadKey } from "../support/uploading.ts";

const REFERENCES = 10_000;

/** Notes each step over all references of a narinfo, and each turn of the event loop. */
class Steps extends SystemClock implements Disposable {
  readonly seen: string[] = [];
  readonly #real = {
    split: String.prototype.split,
    sort: Array.prototype.sort,
    map: Array.prototype.map,
  };
  readonly #played = playRuntime({ clock: this });

  constructor() {
    super();
    const { seen } = this;
    const { split, sort, map } = this.#real;
    String.prototype.split = function (this: string, ...given: never[]) {
      const parts = Reflect.apply(split, this, given) as string[];
      if (parts.length >= REFERENCES) seen.push("read");
      return parts;
    };
    Array.prototype.sort = function (this: unknown[], ...given: never[]) {
      if (this.length >= REFERENCES) seen.push("sort");
      return Reflect.apply(sort, this, given);
    };
    Array.prototype.map = function (this: unknown[], ...given: never[]) {
      const isList = (given[0] as unknown) === hashOfBaseName && this.length >= REFERENCES;
      if (isList) seen.push("list");
      return Reflect.apply(map, this, given) as never[];
    };
  }

  override turn(): Promise<void> {
    if (this.seen.at(-1) !== "turn") this.seen.push("turn");
    return super.turn();
  }

  [Symbol.dispose](): void {
    String.prototype.split = this.#real.split;
    Array.prototype.sort = this.#real.sort;
    Array.prototype.map = this.#real.map;
    this.#played[Symbol.dispose]();
  }
}

Deno.test("upload steps: a narinfo of 10,000 references is sorted once, and yields between steps", async () => {
  await using cache = await uploadCache();
  const thing = makeStoreObject({ name: "thing-1.0", size: 20_000 });
  const names = Array.from({ length: REFERENCES }, (_, index) => `${hash(`one ${index}`)}-r`);
  const large = (narinfo: string) =>
    narinfo.replace(/^References:.*$/m, `References: ${names.join(" ")}`);
  const [one, signed] = [await pushOf(thing), await pushOf(thing, { key: uploadKey })];
  await (await cache.put(one.narPath, one.file.bytes, AS_WRITER)).text();
  const stepsOf = async (narinfo: string) => {
    using steps = new Steps();
    assert.deepEqual(await said(await cache.put(one.narinfoPath, narinfo, AS_WRITER)), [
      201,
      "stored",
    ]);
    return steps.seen.join(" ").replace(/ turn$/, "");
  };
  assert.equal(await stepsOf(large(one.narinfo)), "read turn sort turn list");
  // With another signature, the stored one is read, too.
  const again = "read turn sort turn read turn sort turn list";
  assert.equal(await stepsOf(large(signed.narinfo)), again);
});
