import assert from "node:assert/strict";
import denoJson from "../../../deno.json" with { type: "json" };
import {
  billOfMaterials,
  licenceTexts,
  lockedPackages,
} from "../../../scripts/release/locked_packages.ts";
import { UNUSED_PACKAGES } from "../../../scripts/compile/packages.ts";

const LOCK = JSON.parse(Deno.readTextFileSync(new URL("../../../deno.lock", import.meta.url)));
const PRODUCT = { name: "larder", version: "1.2.3", license: "MIT", deno: "2.6.8" };

Deno.test("bill of materials: each package inside has its hash and its licence", () => {
  const packages = lockedPackages(LOCK);
  const { components: [runtime, ...components] } = billOfMaterials(PRODUCT, packages);

  assert.equal(runtime?.purl, "pkg:github/denoland/deno@v2.6.8");
  const names = components.map(({ name }) => name);
  assert.ok(names.includes("p-limit") && names.includes("@opentelemetry/api"), names.join());
  assert.ok(!names.includes("typescript") && !names.includes("fast-check"), names.join());
  for (const { purl, hashes: [hash], licenses: [licence] } of components) {
    assert.match(purl, /^pkg:npm\/(%40[\w-]+\/)?[\w.-]+@\d+\.\d+\.\d+/);
    assert.match(hash?.content ?? "", /^[0-9a-f]{128}$/, purl);
    assert.ok(licence !== undefined, purl);
  }
});

Deno.test("bill of materials: two of one lock file are the same", () => {
  const [one, other] = [0, 1].map(() => billOfMaterials(PRODUCT, lockedPackages(LOCK)));

  assert.deepEqual(one, other);
});

Deno.test("licences: the text of each package inside stands beside the executables", () => {
  const text = licenceTexts(lockedPackages(LOCK));

  assert.match(text, /^== p-limit 7\.3\.3: MIT$/m);
  assert.match(text, /Permission is hereby granted/);
});

Deno.test("executable: a package that larder never imports is not inside", () => {
  const imported = new Set(importsBelow(new URL("../../../src/", import.meta.url)));
  const idle = Object.keys(denoJson.imports).filter((name) => !imported.has(name));

  assert.ok(imported.has("yaml") && imported.has("@aws-sdk/client-s3"), [...imported].join());
  assert.deepEqual(idle.filter((name) => !UNUSED_PACKAGES.includes(name)), []);
});

/** The names of packages in the import statements and calls of a folder. */
function importsBelow(folder: URL): readonly string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    if (isDirectory) return importsBelow(new URL(`${name}/`, folder));
    if (!name.endsWith(".ts")) return [];
    const text = Deno.readTextFileSync(new URL(name, folder));
    return [...text.matchAll(/(?:from |import\()"((?:@[\w-]+\/)?[\w-]+)/g)].map(([, found]) =>
      found ?? ""
    );
  });
}
