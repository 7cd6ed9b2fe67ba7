import assert from "node:assert/strict";
import { billOfMaterials } from "../../../scripts/release/bill_of_materials.ts";
import { licenceTexts } from "../../../scripts/release/licence_texts.ts";
import { lockedPackages } from "../../../scripts/release/locked_packages.ts";

const LOCK = JSON.parse(Deno.readTextFileSync(new URL("../../../deno.lock", import.meta.url)));
const PRODUCT = { name: "larder", version: "1.2.3", license: "MIT" };

Deno.test("bill of materials: each package inside has its hash and its licence", () => {
  const packages = lockedPackages(LOCK);
  const { components } = billOfMaterials(PRODUCT, packages);

  const names = components.map(({ name }) => name);
  assert.ok(names.includes("pino") && names.includes("@opentelemetry/api"), names.join());
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

  assert.match(text, /^== pino 10\.4\.0: MIT$/m);
  assert.match(text, /Permission is hereby granted/);
});
