# larder, compiled from source. The executable gets its interpreter from nixpkgs' denort. Deno finds
# the program that `deno compile` appends by its place: nothing may change the file afterwards.
{
  lib,
  stdenv,
  callPackage,
  deno,
  installShellFiles,
  commit ? "unknown",
}:
let
  # The ends of the range that scripts/deno accepts.
  oldestDeno = "2.6.8";
  newestDeno = "2.9.6";
  isTested = lib.versionAtLeast deno.version oldestDeno && lib.versionAtLeast newestDeno deno.version;

  sources = [
    "deno.json"
    "deno.lock"
    "main.ts"
    "scripts"
    "src"
  ];
  topOf = path: lib.head (lib.splitString "/" (lib.removePrefix "${toString ../.}/" path));
  src = builtins.path {
    name = "larder-source";
    path = ../.;
    filter = path: _type: lib.elem (topOf path) sources;
  };

  npmCache = callPackage ./npm-cache.nix { lockFile = ../deno.lock; };
in
lib.warnIfNot isTested
  "larder is tested with Deno ${oldestDeno} to ${newestDeno}, and this nixpkgs has ${deno.version}"
  (
    stdenv.mkDerivation {
      pname = "larder";
      inherit (lib.importJSON ../deno.json) version;

      inherit src;

      nativeBuildInputs = [
        deno
        installShellFiles
      ];

      env = {
        DENORT_BIN = "${deno.denort}/bin/denort";
        LARDER_COMMIT = commit;
      };

      configurePhase = ''
        runHook preConfigure
        export HOME=$TMPDIR DENO_DIR=$TMPDIR/deno
        cp -r ${npmCache} "$DENO_DIR"
        chmod -R u+w "$DENO_DIR"
        deno install --cached-only --frozen --entrypoint main.ts
        runHook postConfigure
      '';

      buildPhase = ''
        runHook preBuild
        deno task compile
        runHook postBuild
      '';

      installPhase = ''
        runHook preInstall
        install -D -m 755 dist/larder "$out/bin/larder"
        runHook postInstall
      ''
      + lib.optionalString (stdenv.buildPlatform.canExecute stdenv.hostPlatform) ''
        "$out/bin/larder" man > larder.1
        installManPage larder.1
        for shell in bash zsh fish; do
          "$out/bin/larder" completion $shell > larder.$shell
        done
        installShellCompletion --cmd larder --bash larder.bash --zsh larder.zsh --fish larder.fish
      '';

      # Either would cut off the program behind the ELF.
      dontStrip = true;
      dontPatchELF = true;

      passthru = { inherit npmCache; };

      meta = {
        description = "Pull-through binary cache for Nix";
        license = lib.licenses.mit;
        mainProgram = "larder";
        platforms = [
          "x86_64-linux"
          "aarch64-linux"
          "x86_64-darwin"
          "aarch64-darwin"
        ];
      };
    }
  )
