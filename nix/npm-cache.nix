# A DENO_DIR with every npm package of deno.lock. The lock file has the hash of each, so no hash
# stands here.
{
  lib,
  fetchurl,
  runCommand,
  lockFile,
}:
let
  # `@scope/name@1.2.3_@peer+name@4.5.6` → [ "@scope/name" "1.2.3" ]
  parse = builtins.match "(@?[^@]+)@([^_]+).*";

  unpack =
    key:
    {
      integrity,
      bin ? false,
      ...
    }:
    let
      parts = parse key;
      name = builtins.elemAt parts 0;
      version = builtins.elemAt parts 1;
      tarball = fetchurl {
        url = "https://registry.npmjs.org/${name}/-/${baseNameOf name}-${version}.tgz";
        hash = integrity;
      };
      folder = "$out/npm/registry.npmjs.org/${name}";
    in
    ''
      mkdir -p ${folder}/${version}
      tar -xzf ${tarball} --strip-components=1 -C ${folder}/${version}
    ''
    # Deno 2.6.8 asks the registry for the programs of a package; the package itself names them.
    + lib.optionalString bin ''
      {
        printf '{"name":"%s","dist-tags":{},"versions":{"%s":' ${name} ${version}
        cat ${folder}/${version}/package.json
        printf '}}'
      } > ${folder}/registry.json
    '';
in
runCommand "larder-npm-cache" { } (
  lib.concatStrings (lib.mapAttrsToList unpack (lib.importJSON lockFile).npm)
)
