# A NixOS configuration with larder's module, evaluated by the module system of nixpkgs. Of NixOS
# itself it has only what the module sets, without types.
{
  libPath,
  module,
  configuration,
}:
let
  lib = import libPath;
  pkgs = import ./pkgs.nix { inherit libPath; } // {
    # A program that is on every machine: systemd checks that it is there.
    larder = {
      type = "derivation";
      name = "larder";
      outPath = "/usr";
      meta.mainProgram = "true";
    };
    # The unit's text names the file; whether larder accepts it is tested with larder itself.
    runCommand =
      name: variables: _:
      "/checked-${name}${lib.concatMapStrings (variable: "-with-${variable}") (lib.attrNames variables)}";
  };
  anything = lib.mkOption {
    type = lib.types.attrsOf lib.types.anything;
    default = { };
  };
  list = lib.mkOption {
    type = lib.types.listOf lib.types.anything;
    default = [ ];
  };
  value = lib.mkOption {
    type = lib.types.anything;
    default = null;
  };
  system =
    (lib.evalModules {
      modules = [
        module
        configuration
        {
          config._module.args = { inherit pkgs; };
          options = {
            assertions = list;
            warnings = list;
            environment.systemPackages = list;
            networking.firewall.allowedTCPPorts = list;
            nix.settings = {
              substituters = list;
              trusted-public-keys = list;
              narinfo-cache-negative-ttl = value;
              connect-timeout = value;
            };
            services.nginx = {
              enable = lib.mkEnableOption "nginx";
              user = lib.mkOption { default = "nginx"; };
              group = lib.mkOption { default = "nginx"; };
              virtualHosts = anything;
            };
            systemd = {
              services = anything;
              tmpfiles.rules = list;
            };
            users = {
              users = anything;
              groups = anything;
            };
          };
        }
      ];
    }).config;

  unit = system.systemd.services.larder;
  sections = {
    Unit = {
      Description = unit.description;
      Documentation = unit.documentation;
      Wants = unit.wants;
      After = unit.after;
    };
    Service = unit.serviceConfig;
    Install.WantedBy = unit.wantedBy;
  };
in
{
  refusals = map (one: one.message) (lib.filter (one: !one.assertion) system.assertions);
  unit = lib.generators.toINI { listsAsDuplicateKeys = true; } sections;
  settings = lib.filterAttrsRecursive (_: value: value != null) system.services.larder.settings;
  ports = system.networking.firewall.allowedTCPPorts;
  nix = system.nix.settings;
  virtualHosts = system.services.nginx.virtualHosts;
  tmpfiles = system.systemd.tmpfiles.rules;
  users = lib.attrNames system.users.users;
}
