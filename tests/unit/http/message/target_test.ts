import assert from "node:assert/strict";
import { pathOf } from "../../../../src/http/message/message.ts";

/** Raw request targets behind `http://host`, and the path that is routed. */
const CASES: readonly (readonly [target: string, path: string | undefined])[] = [
  ["", "/"],
  ["/", "/"],
  ["/nix-cache-info", "/nix-cache-info"],
  ["/a?b=/c%2fd", "/a"],
  ["/a%20b", "/a b"],
  ["/../etc/passwd", "/../etc/passwd"],
  ["/%2e%2e/x", "/../x"],
  ["//host/x", "//host/x"],
  ["/a%2fb", undefined],
  ["/a%2Fb", undefined],
  ["/a%5cb", undefined],
  ["/a\\b", undefined],
  ["/a%00b", undefined],
  ["/a\u0000b", undefined],
  ["/a b", undefined],
  ["/ä", undefined],
  ["/a%", undefined],
  ["/a%g0", undefined],
  ["/a%ff", undefined],
];

for (const [target, path] of CASES) {
  Deno.test(`pathOf: ${JSON.stringify(target)} is ${path ?? "not well-formed"}`, () => {
    assert.equal(pathOf(`http://host:8501${target}`), path);
    if (target !== "") assert.equal(pathOf(target), path);
  });
}

Deno.test("path: a store path's name may have a question mark", () => {
  const hash = "0".repeat(32);
  for (const folder of ["/log", "/upload/log"]) {
    const named = `${folder}/${hash}-patch?id=2.drv`;
    assert.equal(pathOf(`http://localhost${named}`), named);
    assert.equal(pathOf(`http://localhost${named.replace("?", "%3F")}`), named);
    const plain = `${folder}/${hash}-patch.drv`;
    for (const query of ["", "?", "?x=1", "?x=a.drv"]) {
      assert.equal(pathOf(`http://localhost${plain}${query}`), plain, query);
    }
    assert.equal(pathOf(`http://localhost${named}%00.drv`), undefined);
  }
  const trace = `/build-trace-v2/${hash}-a?b.drv/out.doi`;
  assert.equal(pathOf(`http://localhost${trace}`), trace);
  assert.equal(pathOf("http://localhost/explain?path=a.drv"), "/explain");
});
