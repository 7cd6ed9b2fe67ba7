{
  config,
  lib,
  options,
  pkgs,
  ...
}:
let
  inherit (lib)
    literalExpression
    mkDefault
    mkEnableOption
    mkIf
    mkMerge
    mkOption
    optional
    optionals
    types
    ;

  cfg = config.services.larder;
  table = import ./options.nix { inherit lib; };
  hardening = import ./service.nix;

  toml = pkgs.formats.toml { };
  isGiven = value: value != null && value != { };
  withoutNulls =
    attrs:
    lib.filterAttrs (_: isGiven) (
      lib.mapAttrs (_: value: if lib.isAttrs value then withoutNulls value else value) attrs
    );
  settings = withoutNulls cfg.settings;
  # A setting by its dotted name, or the fallback for one that is not given.
  settingOr = fallback: name: lib.attrByPath (lib.splitString "." name) fallback settings;
  setting = settingOr null;

  uncheckedFile = toml.generate "larder.toml" settings;
  checkedFile = pkgs.runCommand "larder.toml" (credentialVariables // assumedVariables) ''
    ${lib.getExe cfg.package} config --config ${uncheckedFile} > /dev/null
    cp ${uncheckedFile} "$out"
  '';
  configFile = if cfg.checkSettings then checkedFile else uncheckedFile;

  # From the option itself, as other settings depend on it.
  givenAddress = cfg.settings.server.addr;
  address = if givenAddress == null then ":8501" else givenAddress;
  isSocket = lib.hasPrefix "unix:" address;
  socketPath = lib.removePrefix "unix:" address;
  hostAndPort = builtins.match "(.*):([0-9]+)" address;
  host = if isSocket then "" else lib.elemAt hostAndPort 0;
  port = if isSocket then null else lib.toInt (lib.elemAt hostAndPort 1);
  # A client on this machine reaches every address over the loopback one.
  localHost =
    if
      lib.elem host [
        ""
        "0.0.0.0"
        "[::]"
      ]
    then
      "127.0.0.1"
    else
      host;
  hasCertificate = setting "server.tls-cert" != null;
  hasKey = setting "server.tls-key" != null || lib.elem "server.tls-key" credentialNames;
  hasTls = hasCertificate || hasKey;
  localUrl = "${if hasTls then "https" else "http"}://${localHost}:${toString port}";
  needsPrivilegedPort = port != null && port > 0 && port < 1024;

  isStatic = cfg.user != null;
  socketGroup = setting "server.socket-group";
  databasePath = lib.removePrefix "sqlite:" (settingOr "" "cache.database-url");
  parentOf = path: optional (lib.hasPrefix "/" path) (dirOf path);
  writablePaths = lib.unique (
    lib.filter (path: path != null) [
      (setting "cache.storage-local")
      (setting "cache.temp-path")
    ]
    ++ parentOf databasePath
    ++ lib.filter (folder: folder != "/run/larder") (parentOf socketPath)
  );

  credentialNames = lib.attrNames cfg.credentials;
  nameOf = key: table.secrets.${key} or (lib.replaceStrings [ "." ] [ "-" ] key);
  # systemd puts the folder of the credentials in the place of %d.
  credentialVariables = lib.listToAttrs (
    map (key: lib.nameValuePair table.secretFiles.${key} "%d/${nameOf key}") (
      lib.filter (key: table.secretFiles ? ${key}) credentialNames
    )
  );
  # No build can read the environment file: it may name what the settings lack.
  assumedVariables = lib.optionalAttrs (cfg.environmentFile != null && hasCertificate != hasKey) {
    ${if hasKey then "SERVER_TLS_CERT" else "SERVER_TLS_KEY"} = "/in-the-environment-file";
  };
  knownCredentials = lib.attrNames (table.secrets // table.secretFiles);

  hasLogin = url: builtins.match "[a-zA-Z]+://[^/]*@.*" url != null;
  inStore = path: lib.hasPrefix builtins.storeDir (toString path);

  assertions =
    map (key: {
      assertion = setting key == null;
      message = "services.larder.settings.${key} would be readable by everybody in the Nix store; use services.larder.credentials.\"${key}\" or services.larder.environmentFile.";
    }) (lib.attrNames table.secrets)
    ++ map (key: {
      assertion = setting "${key}-file" == null;
      message = "services.larder.settings.${key}-file names a secret file, which no build of the system can read to check it; give it as services.larder.credentials.\"${key}\".";
    }) (lib.attrNames table.secrets)
    ++ map (key: {
      assertion = setting key == null || !inStore (setting key);
      message = "services.larder.settings.${key} names a file in the Nix store, where everybody can read it; name a file elsewhere, as a string.";
    }) (lib.attrNames table.secretFiles)
    ++ map (key: {
      assertion = lib.elem key knownCredentials;
      message = "services.larder.credentials has no \"${key}\"; expected one of ${lib.concatStringsSep ", " knownCredentials}.";
    }) credentialNames
    ++ [
      {
        assertion = lib.all (url: !hasLogin url) (lib.toList (settingOr [ ] "cache.upstream-url"));
        message = "services.larder.settings.cache.upstream-url holds a password, which everybody could read in the Nix store; write it to a netrc file, and give that as services.larder.credentials.\"netrc-file\".";
      }
      {
        assertion = hasCertificate == hasKey || cfg.environmentFile != null;
        message = "services.larder.settings.server has only one of tls-cert and tls-key; give both or none.";
      }
      {
        assertion = setting "cache.max-size" == null || builtins.match "0[KMGTPiIbB]*" (toString (setting "cache.max-size")) == null;
        message = "services.larder.settings.cache.max-size is 0; expected a size above it, or \"unlimited\".";
      }
      {
        assertion = isStatic || setting "cache.storage-local" == null;
        message = "services.larder.settings.cache.storage-local needs services.larder.user: without one systemd makes up a user at each start, who owns /var/lib/larder alone.";
      }
      {
        assertion = !cfg.openFirewall || cfg.nginx.enable || !isSocket;
        message = "services.larder.openFirewall has no port to open, as services.larder.settings.server.addr is a Unix socket.";
      }
      {
        assertion = !cfg.useAsSubstituter.enable || cfg.useAsSubstituter.url != null;
        message = "services.larder.useAsSubstituter needs services.larder.useAsSubstituter.url, as Nix cannot use the Unix socket of services.larder.settings.server.addr.";
      }
      {
        assertion = !cfg.nginx.sendFiles || (cfg.nginx.enable && isStatic);
        message = "services.larder.nginx.sendFiles needs services.larder.nginx.enable and services.larder.user: without one the storage belongs to a user that systemd makes up.";
      }
      {
        assertion = !(cfg.nginx.enable && isSocket) || socketGroup == config.services.nginx.group;
        message = "services.larder.settings.server.socket-group must be \"${config.services.nginx.group}\" for services.larder.nginx to connect to the socket.";
      }
    ];
in
{
  options.services.larder = {
    enable = mkEnableOption "larder, a pull-through binary cache for Nix";

    package = mkOption {
      type = types.package;
      default = pkgs.larder or (pkgs.callPackage ./package.nix { });
      defaultText = literalExpression "pkgs.larder";
      description = "The package with larder.";
    };

    settings = mkOption {
      type = types.submodule {
        freeformType = toml.type;
        options = lib.mapAttrs (
          _: options:
          if lib.isOption options then
            options
          else
            mkOption {
              type = types.submodule {
                freeformType = toml.type;
                inherit options;
              };
              default = { };
              description = "A table of the configuration file.";
            }
        ) table.options;
      };
      default = { };
      example = literalExpression ''
        {
          cache.max-size = "100G";
          prometheus.enabled = true;
        }
      '';
      description = "The configuration file. Settings without an option here go into it unchanged.";
    };

    checkSettings = mkOption {
      type = types.bool;
      default = pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform;
      defaultText = lib.literalMD "true, unless the machine that builds cannot run larder";
      description = "Whether larder itself checks the settings when the system is built.";
    };

    credentials = mkOption {
      type = types.attrsOf (types.strMatching "/.*" // { description = "an absolute path"; });
      default = { };
      example = {
        "cache.admin-token" = "/run/keys/larder-admin-token";
        "cache.secret-key-path" = "/run/keys/larder-signing-key";
      };
      description = "Files with secrets, by the names of their settings. systemd hands them to larder alone, so root may own them.";
    };

    environmentFile = mkOption {
      type = types.nullOr (types.strMatching "/.*" // { description = "an absolute path"; });
      default = null;
      example = "/run/keys/larder.env";
      description = "File with further environment variables, which win over the settings.";
    };

    user = mkOption {
      type = types.nullOr types.nonEmptyStr;
      default = null;
      example = "larder";
      description = "User that runs larder, and owns its files. By default systemd makes one up.";
    };

    openFirewall = mkEnableOption "the ports of larder in the firewall, or those of nginx where that is in front";

    nginx = {
      enable = mkEnableOption "a virtual host of nginx in front of larder";
      hostName = mkOption {
        type = types.nonEmptyStr;
        example = "cache.example.org";
        description = "Name of the virtual host. TLS goes into `services.nginx.virtualHosts`.";
      };
      sendFiles = mkEnableOption "nginx to send the stored NARs itself. Its group may then read the storage, which needs services.larder.user";
    };

    useAsSubstituter = {
      enable = mkEnableOption "larder as a substituter of this machine";
      publicKey = mkOption {
        type = types.nullOr (
          types.strMatching "[^:]+:[A-Za-z0-9+/]{43}=" // { description = "a public key such as NAME:KEY"; }
        );
        default = null;
        description = "The key that `larder client-config` prints, a line of the client. Without it this machine trusts the signatures of the upstreams alone, which larder forwards.";
      };
      url = mkOption {
        type = types.nullOr types.nonEmptyStr;
        default = if isSocket then null else localUrl;
        defaultText = lib.literalMD "the address of larder on this machine";
        description = "URL by which this machine reaches larder.";
      };
    };
  };

  config = mkIf cfg.enable (mkMerge [
    {
      inherit assertions;

      environment.systemPackages = [ cfg.package ];

      systemd.services.larder = {
        description = "larder, a binary cache for Nix";
        documentation = [ "man:larder(1)" ];
        wants = [ "network-online.target" ];
        after = [ "network-online.target" ];
        wantedBy = [ "multi-user.target" ];
        serviceConfig =
          hardening
          // {
            ExecStart = "${lib.getExe cfg.package} serve --config ${configFile}";
            LoadCredential = map (key: "${nameOf key}:${cfg.credentials.${key}}") credentialNames;
            # larder finds secrets by itself, and the paths of files here.
            Environment = lib.mapAttrsToList (variable: path: "${variable}=${path}") credentialVariables;
            EnvironmentFile = optional (cfg.environmentFile != null) cfg.environmentFile;
            ReadWritePaths = writablePaths;
          }
          // lib.optionalAttrs isStatic {
            DynamicUser = "false";
            User = cfg.user;
            Group = config.users.users.${cfg.user}.group;
          }
          // lib.optionalAttrs cfg.nginx.sendFiles {
            UMask = "0027";
            StateDirectoryMode = "0750";
          }
          // lib.optionalAttrs (socketGroup != null) {
            SupplementaryGroups = [ socketGroup ];
          }
          # Inside a namespace of users no other group exists, and no port below 1024 is free.
          // lib.optionalAttrs (socketGroup != null || needsPrivilegedPort) {
            PrivateUsers = "false";
          }
          // lib.optionalAttrs needsPrivilegedPort {
            AmbientCapabilities = "CAP_NET_BIND_SERVICE";
            CapabilityBoundingSet = "CAP_NET_BIND_SERVICE";
          };
      };
    }

    (mkIf (cfg.user == "larder") {
      users.users.larder = {
        isSystemUser = true;
        group = "larder";
      };
      users.groups.larder = { };
    })

    (mkIf isStatic {
      systemd.tmpfiles.rules = map (
        path: "d ${path} 0750 ${cfg.user} ${config.users.users.${cfg.user}.group} -"
      ) (optional (setting "cache.storage-local" != null) (setting "cache.storage-local"));
    })

    (mkIf cfg.openFirewall {
      networking.firewall.allowedTCPPorts =
        if cfg.nginx.enable then
          [
            80
            443
          ]
        else
          optional (port != null) port;
    })

    (mkIf cfg.nginx.enable {
      services.larder.settings.server = {
        addr = mkDefault "127.0.0.1:8501";
        allowed-hosts = [ cfg.nginx.hostName ];
        # Else nginx would be the client of all requests, and have the connections of one.
        trusted-proxies = mkDefault [ (if isSocket then "unix" else "127.0.0.1") ];
      };
      services.nginx = {
        enable = true;
        virtualHosts.${cfg.nginx.hostName}.locations."/" = {
          proxyPass = if isSocket then "http://unix:${socketPath}" else localUrl;
          # These lose the port.
          recommendedProxySettings = false;
          # The lines of docs/reverse-proxy.md.
          extraConfig = ''
            proxy_http_version 1.1;
            proxy_buffering off;
            proxy_request_buffering off;
            proxy_read_timeout 10m;
            client_max_body_size 0;
            proxy_set_header Host $http_host;
            proxy_set_header Connection "";
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
          ''
          + lib.optionalString cfg.nginx.sendFiles ''
            proxy_set_header X-Sendfile-Type X-Accel-Redirect;
          '';
        };
      };
    })

    (mkIf cfg.nginx.sendFiles {
      services.larder.settings.server.accel-redirect = "/larder-nars/";
      users.users.${config.services.nginx.user}.extraGroups = optional isStatic (
        config.users.users.${cfg.user}.group
      );
      services.nginx.virtualHosts.${cfg.nginx.hostName}.locations."/larder-nars/" = {
        alias = "${settingOr "/var/lib/larder" "cache.storage-local"}/nar/";
        # The tag of the bytes is larder's, and so are these fields.
        extraConfig = ''
          internal;
          sendfile on;
          etag off;
          add_header ETag $upstream_http_etag;
          add_header X-Cache $upstream_http_x_cache;
          add_header X-Request-Id $upstream_http_x_request_id;
        '';
      };
    })

    (lib.optionalAttrs (options ? warnings) {
      warnings = optional (cfg.useAsSubstituter.enable && cfg.useAsSubstituter.publicKey == null)
        "services.larder.useAsSubstituter has no publicKey, so this machine trusts the upstreams' paths alone, and no upload; larder client-config prints the key.";
    })

    (mkIf cfg.useAsSubstituter.enable {
      # All lines of `larder client-config`. NixOS adds them to those of others.
      nix.settings = {
        substituters = optionals (cfg.useAsSubstituter.url != null) [ cfg.useAsSubstituter.url ];
        trusted-public-keys = optional (
          cfg.useAsSubstituter.publicKey != null
        ) cfg.useAsSubstituter.publicKey;
        # Nix remembers a 404 for an hour, also one that an outage caused.
        narinfo-cache-negative-ttl = mkDefault 60;
        connect-timeout = mkDefault 3;
      };
    })
  ]);
}
