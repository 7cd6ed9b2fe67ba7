import { Buffer } from "node:buffer";
import { UNUSED_PACKAGES } from "../compile/packages.ts";

/** A package of npm inside the executable. */
export interface LockedPackage {
  readonly name: string;
  readonly version: string;
  /** Base64 of the SHA-512 sum of its tarball. */
  readonly sha512: string;
  /** An SPDX expression. */
  readonly licence: string;
  /** Its folder below node_modules. */
  readonly folder: string;
}

interface LockFile {
  readonly npm: Readonly<Record<string, { readonly integrity: string }>>;
}

const KEY_REGEXP = /^(?<name>@?[^@]+)@(?<version>[^_]+)/;

/** The packages of `deno.lock` that the executable holds. Throws for one without a licence. */
export function lockedPackages({ npm }: LockFile): readonly LockedPackage[] {
  return Object.entries(npm).flatMap(([key, { integrity }]) => {
    const { name = "", version = "" } = KEY_REGEXP.exec(key)?.groups ?? {};
    if (UNUSED_PACKAGES.includes(name)) return [];
    const folder = `node_modules/.deno/${name.replace("/", "+")}@${version}/node_modules/${name}`;
    const manifest = JSON.parse(Deno.readTextFileSync(`${folder}/package.json`));
    const licence = manifest.license?.type ?? manifest.license;
    if (typeof licence !== "string") throw new Error(`Cannot find the licence of ${key}`);
    return [{ name, version, sha512: integrity.replace("sha512-", ""), licence, folder }];
  });
}

const LICENCE_REGEXP = /^(licen[cs]e|copying)/i;

/** The licences of all packages as one text, as most of them require. */
export function licenceTexts(packages: readonly LockedPackage[]): string {
  return packages.map(({ name, version, licence, folder }) => {
    const files = [...Deno.readDirSync(folder)].map(({ name }) => name)
      .filter((file) => LICENCE_REGEXP.test(file)).sort();
    const texts = files.map((file) => Deno.readTextFileSync(`${folder}/${file}`).trim());
    return `== ${name} ${version}: ${licence}\n\n${texts.map((text) => `${text}\n\n`).join("")}`;
  }).join("");
}

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
