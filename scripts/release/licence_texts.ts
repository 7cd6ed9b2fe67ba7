import type { LockedPackage } from "./locked_packages.ts";

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
