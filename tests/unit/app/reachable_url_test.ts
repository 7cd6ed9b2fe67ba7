import assert from "node:assert/strict";
import { firewallLine, type LocalNetwork, reachableUrl } from "../../../src/app/reachable_url.ts";

const LISTENER = "http://localhost:8501";

/** A machine `nas` at 192.168.1.5. `names`: what the name server knows. */
function network(
  names: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
  addresses = ["192.168.1.5", "fd00::5"],
): LocalNetwork {
  return {
    hostname: () => "nas",
    addresses: () => addresses,
    text: (path) => Promise.resolve(files[path]),
    resolve: (name, server) =>
      Promise.resolve([names[`${name} by ${server}`] ?? names[name] ?? []].flat()),
  };
}

const RESOLV = "/etc/resolv.conf";

for (
  const [what, given, expected] of [
    ["the host name, where the network knows it", network({ nas: "192.168.1.5" }), "nas"],
    [
      "the name below a search domain, where only that is known",
      network({ "nas.lan": "192.168.1.5" }, { [RESOLV]: "search lan\n" }),
      "nas.lan",
    ],
    ["the address, where no name is known", network({}), "192.168.1.5"],
    ["the address, where the name is the loopback's", network({ nas: "127.0.1.1" }), "192.168.1.5"],
    [
      "the address, where the name is another machine's",
      network({ nas: "10.0.0.9" }),
      "192.168.1.5",
    ],
    ["an IPv6 address in brackets", network({}, {}, ["fd00::5"]), "[fd00::5]"],
    ["the host name, where nothing else is known", network({}, {}, []), "nas"],
    [
      "the address, where only systemd-resolved knows the name",
      network({ "nas by 127.0.0.53": "192.168.1.5" }, {
        [RESOLV]: "nameserver 127.0.0.53\n",
        "/run/systemd/resolve/resolv.conf": "nameserver 192.168.1.1\n",
      }),
      "192.168.1.5",
    ],
  ] as const
) {
  Deno.test(`reachable url: other machines get ${what}`, async () => {
    assert.equal(await reachableUrl(LISTENER, { network: given }), `http://${expected}:8501`);
  });
}

Deno.test("reachable url: a name or an address of others is kept, each name of the loopback is not", async () => {
  const urlOf = (url: string) => reachableUrl(url, { network: network({ nas: "192.168.1.5" }) });
  for (const host of ["cache.example", "cache.example:80", "192.168.1.5:8501", "[fd00::5]:8501"]) {
    assert.equal(await urlOf(`http://${host}`), `http://${host}`);
  }
  for (const host of ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"]) {
    assert.equal(await urlOf(`https://${host}:9000/`), "https://nas:9000", host);
  }
});

const ID = "4f66ad9a0b2e";
for (
  const [what, files] of [
    ["Docker", { "/.dockerenv": "" }],
    ["Podman", { "/run/.containerenv": "engine=podman" }],
    ["Kubernetes", { [RESOLV]: "search infra.svc.cluster.local svc.cluster.local\n" }],
  ] as const
) {
  Deno.test(`reachable url: in a container of ${what} only a given name is told`, async () => {
    const known = network({ [ID]: "172.17.0.2" }, files, ["172.17.0.2"]);
    const inner = { ...known, hostname: () => ID };
    const urlOf = (hostname?: string) => reachableUrl(LISTENER, { hostname, network: inner });
    assert.equal(await urlOf("cache.example"), "http://cache.example:8501");
    assert.equal(await urlOf(), "http://ADDRESS-OF-THIS-CACHE:8501");
  });
}

Deno.test("reachable url: a container's own host name is told only where --cache-hostname is it", async () => {
  for (const files of [{ "/.dockerenv": "" }, { [RESOLV]: "search infra.svc.cluster.local\n" }]) {
    const inner = network({ nas: "172.17.0.2" }, files, ["172.17.0.2"]);
    const unset = await reachableUrl(LISTENER, { network: inner });
    assert.equal(unset, "http://ADDRESS-OF-THIS-CACHE:8501");
    const set = await reachableUrl(LISTENER, { hostname: "nas", network: inner });
    assert.equal(set, "http://nas:8501");
  }
});

for (
  const [what, files, line] of [
    ["no firewall has no line", {}, undefined],
    ["ufw that is off has no line", { "/etc/ufw/ufw.conf": "ENABLED=no\n" }, undefined],
    ["ufw", { "/etc/ufw/ufw.conf": "ENABLED=yes\n" }, "sudo ufw allow 8501/tcp"],
    [
      "firewalld",
      { "/run/firewalld.pid": "7" },
      "sudo firewall-cmd --permanent --add-port=8501/tcp && sudo firewall-cmd --reload",
    ],
    [
      "NixOS",
      { "/etc/systemd/system/firewall.service": "" },
      "networking.firewall.allowedTCPPorts = [ 8501 ];",
    ],
  ] as const
) {
  Deno.test(`reachable url: ${what}`, async () => {
    assert.equal(await firewallLine(LISTENER, network({}, files)), line);
  });
}
