# What larder's Nix files use of nixpkgs, made of nixpkgs' lib and the programs of this machine.
{
  libPath,
  # Programs; a test that builds nothing needs none.
  deno ? "/deno",
  denort ? "/denort",
  path ? "/usr/bin:/bin",
  fetchurl ? import <nix/fetchurl.nix>,
}:
let
  lib = import libPath;
  run =
    name: environment: script:
    derivation (
      environment
      // {
        inherit name;
        system = builtins.currentSystem;
        builder = "/bin/bash";
        PATH = path;
        args = [
          "-euc"
          script
        ];
      }
    );

  platform = {
    canExecute = _: true;
  };

  # The phases that larder's package defines, in the order of nixpkgs' own.
  mkDerivation =
    args:
    run "${args.pname}-${args.version}" args.env ''
      export TMPDIR=$PWD
      runHook() { :; }
      installManPage() { install -D -m 644 -t "$out/share/man/man1" "$1"; }
      installShellCompletion() { install -D -m 644 -t "$out/share/completions" larder.{bash,zsh,fish}; }
      cp -r ${args.src} source
      chmod -R u+w source
      cd source
      ${args.configurePhase}
      ${args.buildPhase}
      ${args.installPhase}
    ''
    // args
    // args.passthru;

  self = {
    inherit lib fetchurl;
    runCommand = run;
    stdenv = {
      inherit mkDerivation;
      buildPlatform = platform;
      hostPlatform = platform;
    };
    deno = {
      version = "2.6.8";
      outPath = deno;
      denort.outPath = denort;
    };
    installShellFiles = null;
    callPackage =
      file: given:
      let
        function = import file;
      in
      function (builtins.intersectAttrs (builtins.functionArgs function) self // given);
    formats.toml = _: {
      type = lib.types.attrsOf lib.types.anything;
      generate = name: value: "/${name} with ${builtins.toJSON value}";
    };
  };
in
self
