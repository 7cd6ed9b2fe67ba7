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
