import assert from "node:assert/strict";
import { recompressParts } from "../../../src/app/serve.ts";
import { hasZstdEncoder } from "../../../src/cache/recompress/encode_nar.ts";
import { OPTIONS } from "../../../src/config/options.ts";

const byDefault = {
  "cache.recompress": OPTIONS["cache.recompress"].default,
  "cache.recompress-level": OPTIONS["cache.recompress-level"].default,
};

Deno.test("recompression: by default it is on with two cores and an encoder, and off else", () => {
  const parts = hasZstdEncoder() ? { level: 9 } : undefined;
  assert.deepEqual(recompressParts(byDefault, 2), parts);
  assert.equal(recompressParts(byDefault, 1), undefined);
  assert.equal(recompressParts({ ...byDefault, "cache.recompress": "off" }, 2), undefined);
});
