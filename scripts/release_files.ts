// Writes the files beside the executables of a release in dist: their SHA-256 sums, the bill of
// materials, and the licences of the packages inside.
import { createHash } from "node:crypto";
import denoJson from "../deno.json" with { type: "json" };
import { billOfMaterials, licenceTexts, lockedPackages } from "./release/locked_packages.ts";

const base = `larder-${denoJson.version}`;

const packages = lockedPackages(JSON.parse(Deno.readTextFileSync("deno.lock")));
Deno.mkdirSync("dist", { recursive: true });
const { name, version, license } = denoJson;
const bill = billOfMaterials({ name, version, license, deno: Deno.version.deno }, packages);
Deno.writeTextFileSync(`dist/${base}.cdx.json`, `${JSON.stringify(bill, null, 2)}\n`);
Deno.writeTextFileSync(`dist/${base}.licenses.txt`, licenceTexts(packages));
Deno.writeTextFileSync(`dist/${base}.sha256sums`, await sums());

/** Checksums in the format of `sha256sum --check`. */
async function sums(): Promise<string> {
  const names = [...Deno.readDirSync("dist")].map(({ name }) => name)
    .filter((name) => name.startsWith(`${base}-`)).sort();
  const lines = names.map(async (name) => `${await digestOf(`dist/${name}`)}  ${name}\n`);
  return (await Promise.all(lines)).join("");
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const bytes of (await Deno.open(path)).readable) hash.update(bytes);
  return hash.digest("hex");
}
