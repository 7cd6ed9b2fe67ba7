import assert from "node:assert/strict";
import { type DocumentKind, documentName } from "../../../src/nix/document_name.ts";

const HASH = "n5glp21rsz314qssw9fbvfswgy3kc68f";
const DRV = `${HASH}-hello-2.12.1.drv`;
const HEX = "0123456789abcdef".repeat(4);

const GOOD: readonly (readonly [DocumentKind, readonly string[], path: string])[] = [
  ["listing", [HASH], `${HASH}.ls`],
  ["log", [DRV], `log/${DRV}`],
  ["log", [`${HASH}-gtk+-3.drv`], `log/${HASH}-gtk+-3.drv`],
  ["log", [`${HASH}-what?.drv`], `log/${HASH}-what%3F.drv`],
  ["build-trace", [DRV, "out"], `build-trace-v2/${DRV}/out.doi`],
  ["realisation", [`sha256:${HEX}!out`], `realisations/sha256:${HEX}!out.doi`],
  ["debuginfo", [HEX.slice(0, 40)], `debuginfo/${HEX.slice(0, 40)}`],
  ["debuginfo", [HEX.slice(0, 16)], `debuginfo/${HEX.slice(0, 16)}`],
  ["debuginfo", [`${HEX.slice(0, 40)}.debug`], `debuginfo/${HEX.slice(0, 40)}.debug`],
];

for (const [kind, parts, path] of GOOD) {
  Deno.test(`documentName: the ${kind} of ${parts.join(" ").slice(-30)} has its path`, () => {
    assert.deepEqual(documentName(kind, parts), { kind, path });
  });
}

const BAD: readonly (readonly [DocumentKind, ...parts: string[]])[] = [
  ["listing", ""],
  ["listing", HASH.slice(1)],
  ["listing", HASH.toUpperCase()],
  ["log", HASH],
  ["log", `${HASH}-hello`],
  ["log", `../${DRV}`],
  ["log", `${HASH}-a/b.drv`],
  ["log", `${HASH}-a b.drv`],
  ["log", `${HASH}-ä.drv`],
  ["build-trace", DRV, ""],
  ["build-trace", DRV, ".."],
  ["build-trace", DRV, "a/b"],
  ["build-trace", HASH, "out"],
  ["realisation", `sha256:${HEX}`],
  ["realisation", `sha256:${HEX}!`],
  ["realisation", `sha256:${HEX.slice(1)}!out`],
  ["realisation", `sha512:${HEX}!out`],
  ["realisation", `sha256:${HEX}!out\n`],
  ["debuginfo", ""],
  ["debuginfo", "abc"],
  ["debuginfo", "xyz0".repeat(10)],
  ["debuginfo", `${HEX.slice(0, 40)}.debug.debug`],
  ["debuginfo", "ab".repeat(65)],
];

for (const [kind, ...parts] of BAD) {
  Deno.test(`documentName: no ${kind} is named ${JSON.stringify(parts).slice(0, 60)}`, () => {
    assert.equal(documentName(kind, parts), undefined);
  });
}
