{
  description = "Pull-through binary cache for Nix";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      forAll = lib.genAttrs systems;
      larderFor = system: nixpkgs.legacyPackages.${system}.callPackage ./nix/package.nix {
        commit = self.rev or self.dirtyRev or "unknown";
      };
    in
    {
      packages = forAll (system: rec {
        larder = larderFor system;
        default = larder;
      });

      overlays.default = import ./nix/overlay.nix;

      nixosModules.default =
        { lib, pkgs, ... }:
        {
          imports = [ ./nix/module.nix ];
          services.larder.package = lib.mkDefault (larderFor pkgs.stdenv.hostPlatform.system);
        };

      checks = forAll (
        system:
        {
          package = larderFor system;
        }
        // lib.optionalAttrs (lib.hasSuffix "-linux" system) {
          nixos = nixpkgs.legacyPackages.${system}.testers.runNixOSTest (
            import ./nix/vm-test.nix { module = self.nixosModules.default; }
          );
        }
      );

      formatter = forAll (system: nixpkgs.legacyPackages.${system}.nixfmt-tree);
    };
}
