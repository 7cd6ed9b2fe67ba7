# Three machines of NixOS: a signed upstream, larder in front of it, and a client that trusts the
# upstream's key. The upstream then goes, and a second client still gets everything.
{ module }:
let
  # A key pair of this test alone.
  upstreamSecret = "upstream-1:La8ubqHizPqBmD5c1eiS7o90On3RXFHRLwEj5ANbmWZ1JIr+miMst6DqRoMVrWKhbE2prdKv1EsOVCNjG3JvDQ==";
  upstreamPublic = "upstream-1:dSSK/pojLLeg6kaDFa1ioWxNqa3Sr9RLDlQjYxtybw0=";
in
{
  name = "larder";

  nodes = {
    upstream =
      { pkgs, ... }:
      {
        services.harmonia.cache = {
          enable = true;
          signKeyPaths = [ "${pkgs.writeText "upstream-secret" upstreamSecret}" ];
        };
        networking.firewall.allowedTCPPorts = [ 5000 ];
        environment.etc."hello".source = pkgs.hello;
      };

    cache = {
      imports = [ module ];
      services.larder = {
        enable = true;
        openFirewall = true;
        useAsSubstituter.enable = true;
        settings = {
          cache = {
            upstream-url = [ "http://upstream:5000" ];
            upstream-public-key = [ upstreamPublic ];
            max-size = "1G";
          };
          prometheus.enabled = true;
        };
      };
    };

    client = {
      nix.settings = {
        substituters = [ "http://cache:8501" ];
        narinfo-cache-negative-ttl = 60;
        connect-timeout = 3;
        trusted-public-keys = [ upstreamPublic ];
        experimental-features = [ "nix-command" ];
      };
    };
  };

  testScript = ''
    start_all()
    # A socket starts harmonia with the first request.
    upstream.wait_for_open_port(5000)
    # With Type=notify the unit is active once larder answers.
    cache.wait_for_unit("larder.service")
    cache.succeed("curl -sf http://localhost:8501/nix-cache-info")

    hello = upstream.succeed("readlink -f /etc/hello").strip()

    with subtest("the first pull goes through to the upstream"):
        client.succeed(f"nix-store --realise {hello}")
        client.succeed(f"{hello}/bin/hello")

    with subtest("the second pull needs no upstream"):
        upstream.shutdown()
        client.succeed(f"nix-store --delete --ignore-liveness {hello}")
        client.succeed(f"nix-store --realise {hello}")
        client.succeed(f"{hello}/bin/hello")

    with subtest("larder survives a restart, and the sandbox keeps the rest from it"):
        cache.succeed("systemctl restart larder.service")
        cache.succeed("curl -sf http://localhost:8501/metrics | grep larder_cache_size_bytes")
        pid = cache.succeed("systemctl show --value -p MainPID larder.service").strip()
        cache.succeed(f"grep -q 'NoNewPrivs:.*1' /proc/{pid}/status")
        cache.succeed(f"grep -q 'CapEff:.*0000000000000000' /proc/{pid}/status")
        exposure = cache.succeed("systemd-analyze security larder.service | tail -n 1")
        print(exposure)
  '';
}
