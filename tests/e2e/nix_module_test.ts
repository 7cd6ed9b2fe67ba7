import assert from "node:assert/strict";
import { OPTIONS } from "../../src/config/options.ts";
import type { AnyOption } from "../../src/config/kinds/option.ts";
import { clientSettings } from "../../src/nix/client_ways.ts";
import { nixTest } from "../support/nix_client.ts";
import {
  type EvaluatedSystem,
  evaluateSystem,
  evaluateWithPackages,
  evaluationTest,
  parseNixFile,
} from "../support/nix_evaluation.ts";
import { exposureOf, problemsWith, SYSTEMD_MISSING, unitFile } from "../support/systemd.ts";

const EXPOSURE_MAX = 1.5;

const KEY = `cache-1:${"A".repeat(43)}=`;

nixTest("nix: every file of larder is in the Nix language", async () => {
  const files = [...Deno.readDirSync("nix")].map(({ name }) => `nix/${name}`);
  for (const path of ["flake.nix", ...files]) await parseNixFile(path);
});

nixTest("nix: the flake has a lock for each input, which Nix reads", () => {
  const { nodes, root, version } = JSON.parse(Deno.readTextFileSync("flake.lock"));
  assert.equal(version, 7);
  assert.deepEqual(Object.keys(nodes[root].inputs), ["nixpkgs"]);
  const { locked, original } = nodes[nodes[root].inputs.nixpkgs];
  const [, owner, repo, ref] = /github:([^/]+)\/([^/]+)\/([^"]+)"/.exec(
    Deno.readTextFileSync("flake.nix"),
  ) ?? [];
  assert.deepEqual(original, { type: "github", owner, repo, ref });
  assert.match(locked.rev, /^[0-9a-f]{40}$/);
  assert.match(locked.narHash, /^sha256-[A-Za-z0-9+/]{43}=$/);
  assert.deepEqual([locked.type, locked.owner, locked.repo], ["github", owner, repo]);
  return Promise.resolve();
});

interface Configured {
  /** Settings of `services.larder` beside `enable`. */
  readonly larder: string;
  /** Lines of the unit, and lines that it lacks. */
  readonly has: readonly string[];
  readonly lacks?: readonly string[];
  check?(system: EvaluatedSystem): void;
}

const CONFIGURATIONS: Readonly<Record<string, Configured>> = {
  "nothing but enable": {
    larder: "",
    has: [
      "Type=notify",
      "DynamicUser=true",
      "PrivateUsers=true",
      "ExecStart=/usr/bin/true serve --config /checked-larder.toml",
      "WantedBy=multi-user.target",
    ],
    lacks: ["ReadWritePaths", "LoadCredential", "Environment"],
    check: ({ ports, nix }) => assert.deepEqual([ports, nix["substituters"]], [[], []]),
  },
  "a server for a network, and for itself": {
    larder: `openFirewall = true;
      useAsSubstituter = { enable = true; publicKey = "${KEY}"; };
      settings = { cache.max-size = "100G"; server.addr = ":80"; "new-thing" = 3; };`,
    has: ["AmbientCapabilities=CAP_NET_BIND_SERVICE", "PrivateUsers=false"],
    check({ ports, nix, settings }) {
      assert.deepEqual(ports, [80]);
      assert.deepEqual(nix["substituters"], ["http://127.0.0.1:80"]);
      assert.deepEqual(nix["trusted-public-keys"], [KEY]);
      assert.deepEqual(nix["narinfo-cache-negative-ttl"], 60);
      assert.deepEqual(nix["connect-timeout"], 3);
      for (const line of clientSettings("http://127.0.0.1:80", [KEY])) {
        const name = line.replace(/ = .*/, "").replace(/^extra-/, "");
        assert.ok(nix[name] !== undefined && nix[name] !== null, name);
      }
      assert.equal(settings["new-thing"], 3);
    },
  },
  "a storage and a user of its own": {
    larder: `user = "larder";
      settings.cache = { storage-local = "/data"; database-url = "sqlite:/ssd/larder/db"; };`,
    has: ["DynamicUser=false", "User=larder", "ReadWritePaths=/data", "ReadWritePaths=/ssd/larder"],
    check({ tmpfiles, users }) {
      assert.deepEqual(tmpfiles, ["d /data 0750 larder larder -"]);
      assert.deepEqual(users, ["larder"]);
    },
  },
  "secrets": {
    larder: `environmentFile = "/keys/env";
      settings.server = { tls-cert = "/keys/cert"; addr = "cache.example.org:8443"; };
      credentials = { "server.tls-key" = "/keys/tls"; "cache.admin-token" = "/keys/admin"; };`,
    has: [
      "LoadCredential=cache-admin-token:/keys/admin",
      "LoadCredential=server-tls-key:/keys/tls",
      "Environment=SERVER_TLS_KEY=%d/server-tls-key",
      "ExecStart=/usr/bin/true serve --config /checked-larder.toml-with-SERVER_TLS_KEY",
      "EnvironmentFile=/keys/env",
    ],
  },
  "the paths of a certificate and its key in two places": {
    larder: `environmentFile = "/keys/env"; settings.server.tls-cert = "/keys/cert";`,
    // The check, which cannot read the file of variables, takes both for given.
    has: ["ExecStart=/usr/bin/true serve --config /checked-larder.toml-with-SERVER_TLS_KEY"],
  },
  "nginx in front, over a Unix socket": {
    larder: `openFirewall = true;
      nginx = { enable = true; hostName = "cache.example.org"; };
      settings.server = { addr = "unix:/run/larder/socket"; socket-group = "nginx"; };`,
    has: ["SupplementaryGroups=nginx", "PrivateUsers=false", "RuntimeDirectory=larder"],
    lacks: ["ReadWritePaths"],
    check({ ports, virtualHosts, settings }) {
      assert.deepEqual(ports, [80, 443]);
      const { locations } = virtualHosts["cache.example.org"] as Record<string, unknown>;
      assert.match(JSON.stringify(locations), /"proxyPass":"http:\/\/unix:\/run\/larder\/socket"/);
      assert.match(JSON.stringify(locations), /Host \$http_host;.*X-Forwarded-Proto \$scheme;/);
      assert.match(JSON.stringify(settings), /"allowed-hosts":\["cache.example.org"\]/);
      assert.match(JSON.stringify(settings), /"trusted-proxies":\["unix"\]/);
    },
  },
  "nginx that sends the stored NARs": {
    larder: `user = "larder"; nginx = {
        enable = true; hostName = "cache.example.org"; sendFiles = true;
      };`,
    has: ["UMask=0027", "StateDirectoryMode=0750", "User=larder"],
    check({ virtualHosts, settings }) {
      const { locations } = virtualHosts["cache.example.org"] as Record<string, unknown>;
      const text = JSON.stringify(locations);
      assert.match(text, /"\/larder-nars\/":\{"alias":"\/var\/lib\/larder\/nar\/"/);
      assert.match(text, /X-Sendfile-Type X-Accel-Redirect/);
      assert.match(JSON.stringify(settings), /"accel-redirect":"\/larder-nars\/"/);
      assert.match(JSON.stringify(settings), /"trusted-proxies":\["127.0.0.1"\]/);
    },
  },
};

for (const [name, { larder, has, lacks = [], check }] of Object.entries(CONFIGURATIONS)) {
  evaluationTest(`nix: the module makes a right unit of ${name}`, async () => {
    const system = await evaluateSystem(systemOf(larder));

    assert.deepEqual(system.refusals, []);
    const lines = system.unit.split("\n");
    for (const line of has) assert.ok(lines.includes(line), `${line} in\n${system.unit}`);
    for (const word of lacks) assert.ok(!lines.some((line) => line.startsWith(`${word}=`)), word);
    check?.(system);
  });

  evaluationTest(
    `nix: systemd finds nothing wrong with the module's unit of ${name}`,
    async () => {
      const { unit: text } = await evaluateSystem(systemOf(larder));
      using unit = unitFile(text);
      assert.equal(problemsWith(unit), "");
      assert.ok(exposureOf(unit) <= EXPOSURE_MAX, String(exposureOf(unit)));
    },
    SYSTEMD_MISSING,
  );
}

function systemOf(larder: string): string {
  return `{ services.larder = { enable = true; ${larder} }; }`;
}

/** Settings of `services.larder` that are refused, with words of the sentence. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  'settings.cache.max-size = "10 apples"': /cache\.max-size.*a size such as 512K, 10G or 1\.5T/,
  'settings.cache.max-size = "0"':
    /cache\.max-size is 0; expected a size above it, or \"unlimited\"/,
  'settings.log-level = "loud"': /log-level.*one of "debug", "info", "warn", "error"/,
  "settings.cache.priority = 0": /cache\.priority.*between 1 and/,
  'settings.cache.upstream-public-key = [ "key" ]': /upstream-public-key.*NAME:KEY/s,
  'settings.cache.storage-local = "data"': /storage-local.*an absolute path/,
  'settings.cache.storage-local = "/data"': /storage-local needs services\.larder\.user/,
  'settings.cache.admin-token = "secret"': /admin-token would be readable by everybody/,
  'settings.cache.admin-token-file = "/run/agenix/t"':
    /admin-token-file names a secret file.*; give it as .*credentials\."cache\.admin-token"/,
  'settings.cache.upstream-url = [ "https://me:secret@c.example.org" ]': /holds a password/,
  'settings.server.tls-key = builtins.storeDir + "/key"': /tls-key names a file in the Nix store/,
  'settings.server.tls-cert = "/cert"': /only one of tls-cert and tls-key; give both or none/,
  'credentials."cache.priority" = "/key"': /no "cache\.priority"; expected one of/,
  'openFirewall = true; settings.server.addr = "unix:/run/larder/s"': /no port to open/,
  'nginx = { enable = true; hostName = "c.example.org"; sendFiles = true; }':
    /sendFiles needs .*user/,
  'useAsSubstituter.enable = true; settings.server.addr = "unix:/run/larder/s"': /needs .*\.url/,
};

evaluationTest("nix: the module refuses wrong settings with a sentence", async () => {
  for (const [larder, sentence] of Object.entries(REFUSED)) {
    assert.match(await refusal(larder), sentence, larder);
  }
});

evaluationTest("nix: each option takes larder's values, in NixOS's writing", async () => {
  const settings: Record<string, unknown> = {};
  for (const [key, option] of Object.entries<AnyOption>(OPTIONS)) {
    const value = sampleOf(option);
    if (option.secret || option.notInFile || value === undefined) continue;
    const [table = "", name] = key.split(".", 2);
    if (name === undefined) settings[table] = value;
    else settings[table] = { ...settings[table] as object | undefined, [name]: value };
  }
  const json = JSON.stringify(JSON.stringify(settings)).replaceAll("${", "\\${");

  const system = await evaluateSystem(`{
    services.larder = { enable = true; user = "larder"; settings = builtins.fromJSON ${json}; };
  }`);

  assert.deepEqual(system.settings, settings);
});

evaluationTest(
  "nix: the package takes every npm package by the hash of the lock file",
  async () => {
    const script = String(
      await evaluateWithPackages(
        'builtins.elemAt (pkgs.callPackage (root + "/nix/package.nix") { }).npmCache.args 1',
      ),
    );

    const { npm } = JSON.parse(Deno.readTextFileSync("deno.lock"));
    for (const [name, { integrity }] of Object.entries<{ integrity: string }>(npm)) {
      assert.ok(script.includes(`.tgz#${integrity}`), name);
    }
    assert.match(script, /registry\.npmjs\.org\/@opentelemetry\/api\/-\/api-[\d.]+\.tgz#/);
  },
);

/** The error of Nix when it builds the system: of a type, or of an assertion. */
async function refusal(larder: string): Promise<string> {
  try {
    const system = await evaluateSystem(`{ services.larder = { enable = true; ${larder}; }; }`);
    return system.refusals.join("\n");
  } catch (error) {
    return String(error);
  }
}

/** A valid value in the language of JSON; `undefined` if the table has none. */
function sampleOf({ kind, default: value, example }: AnyOption): unknown {
  if (typeof value === "boolean") return value;
  if (kind.range !== undefined) return typeof value === "number" ? value : Number(example);
  if (kind.item !== undefined) {
    const { item } = kind;
    return Array.isArray(value) ? value.map((one) => item.print(one)) : example && [example];
  }
  return value === undefined ? example : kind.print(value);
}
