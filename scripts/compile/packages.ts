/** Packages of scripts and tests alone. */
export const UNUSED_PACKAGES = [
  "axe-core",
  "fast-check",
  "marked",
  "minisearch",
  "pure-rand",
  "typescript",
];

/**
 * Files that a program reads. The compiler parses all others too, and keeps each syntax error with
 * the path of this folder. bintrees even has a 2 MB list of numbers that overflows its stack.
 */
const CODE_REGEXP = /\.(js|cjs|mjs|json|wasm)$/;

/** A file for browsers that imports one which is not there: another error with a path. */
const FOR_BROWSERS = "unbzip2-stream.min.js";

/** Paths in `node_modules` that the executable leaves out. */
export function excludedPackageFiles(folder = "node_modules"): readonly string[] {
  const excluded: string[] = [];
  for (const { name, isDirectory, isFile } of Deno.readDirSync(folder)) {
    const path = `${folder}/${name}`;
    if (isUnused(name) || name === FOR_BROWSERS) excluded.push(path);
    else if (isDirectory) excluded.push(...excludedPackageFiles(path));
    else if (isFile && !CODE_REGEXP.test(name)) excluded.push(path);
  }
  return excluded.sort();
}

/** True for the folder of an unused package, `NAME` or `NAME@VERSION`, and links to it. */
function isUnused(name: string): boolean {
  return UNUSED_PACKAGES.includes(name.replace(/(?<=.)@.*$/, ""));
}
