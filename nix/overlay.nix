final: _previous: { larder = final.callPackage ./package.nix { }; }
