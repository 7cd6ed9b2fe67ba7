import assert from "node:assert/strict";
import { formatNixCacheInfo, parseNixCacheInfo } from "../../../src/nix/nix_cache_info.ts";

Deno.test("nix-cache-info: our own is three ended lines", () => {
  const info = { storeDir: "/nix/store", wantMassQuery: true, priority: 30 };

  const text = formatNixCacheInfo(info);

  assert.equal(text, "StoreDir: /nix/store\nWantMassQuery: 1\nPriority: 30\n");
  assert.deepEqual(parseNixCacheInfo(text), info);
});

Deno.test("nix-cache-info: only the store directory is needed", () => {
  const expected = { storeDir: "/nix/store", wantMassQuery: false };
  for (const text of ["StoreDir: /nix/store", "\nStoreDir:/nix/store\r\nX: y\nno colon\n\n"]) {
    assert.deepEqual(parseNixCacheInfo(text), expected);
  }
});

Deno.test("nix-cache-info: something else altogether is corrupt", () => {
  const pages = ["", "<!doctype html>", "StoreDir:", "StoreDir: nix", "WantMassQuery: 1\n"];
  const priorities = ["", "high", "-1", "1.5", "99999999999"];
  const texts = priorities.map((priority) => `StoreDir: /nix/store\nPriority: ${priority}\n`);
  for (const text of [...pages, ...texts, `StoreDir: /${"x".repeat(100_000)}`]) {
    assert.throws(() => parseNixCacheInfo(text), { name: "Failure", kind: "corrupt" }, text);
  }
});
