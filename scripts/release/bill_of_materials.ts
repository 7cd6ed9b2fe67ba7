import { Buffer } from "node:buffer";
import type { LockedPackage } from "./locked_packages.ts";

/** The program that the bill is of. */
export interface Product {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  /** The version of Deno, which each executable embeds. */
  readonly deno: string;
}

/** A software bill of materials: CycloneDX 1.6. It has no time, as two builds are the same. */
export function billOfMaterials(product: Product, packages: readonly LockedPackage[]) {
  const { name, version, license, deno } = product;
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        "type": "application",
        "bom-ref": `${name}@${version}`,
        name,
        version,
        licenses: [{ license: { id: license } }],
      },
    },
    components: [runtimeOf(deno), ...packages.map(componentOf)] as const,
  };
}

function runtimeOf(version: string) {
  const purl = `pkg:github/denoland/deno@v${version}`;
  return {
    "type": "platform",
    "bom-ref": purl,
    name: "deno",
    version,
    purl,
    licenses: [{ license: { id: "MIT" } }],
  };
}

function componentOf({ name, version, sha512, licence }: LockedPackage) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const isExpression = / (AND|OR|WITH) /.test(licence);
  return {
    "type": "library",
    "bom-ref": purl,
    name,
    version,
    purl,
    hashes: [{ alg: "SHA-512", content: Buffer.from(sha512, "base64").toString("hex") }],
    licenses: [isExpression ? { expression: licence } : { license: { id: licence } }],
  };
}
