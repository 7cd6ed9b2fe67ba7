import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { freePort } from "../support/free_port.ts";
import { startLarder } from "../support/larder_process.ts";
import { placedHere, type Places } from "../support/deployment.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { OwnCertificate } from "../support/tls_front.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const DOCUMENT = Deno.readTextFileSync(`${ROOT}docs/reverse-proxy.md`);
const SITE = "cache.example.org";
const OBJECT = makeStoreObject({ name: "large-1.0", size: 1_000_000 });

/** How a proxy runs with the lines of the document, moved to places of this machine. */
interface Proxy {
  readonly heading: string;
  readonly program: "nginx" | "caddy";
  readonly run: (folder: string, lines: string, port: number, certificate: OwnCertificate) => {
    readonly args: readonly string[];
    readonly conf: string;
  };
}

const PROXIES: readonly Proxy[] = [
  {
    heading: "nginx with a certificate",
    program: "nginx",
    run(folder, lines, port, { caFile, keyFile }) {
      const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map((kind) => `${kind}_temp_path ${folder}/${kind};`).join("\n");
      const site = placedHere(lines, {
        "listen 443": `listen 127.0.0.1:${port}`,
        [`/etc/ssl/${SITE}/cert.pem`]: caFile,
        [`/etc/ssl/${SITE}/key.pem`]: keyFile,
      });
      // As root, the workers would otherwise change to a user without access to the folder.
      const user = Deno.uid() === 0 ? "user root root;" : "";
      const conf = `${user}\ndaemon off;\npid ${folder}/pid;\nevents {}\n` +
        `http {\naccess_log off;\n${temp}\n${site}\n}\n`;
      return { conf, args: ["-p", folder, "-e", "stderr", "-c", `${folder}/conf`] };
    },
  },
  {
    heading: "Caddy",
    program: "caddy",
    run(folder, lines, port, { caFile, keyFile }) {
      const globals = "{\nadmin off\nauto_https disable_redirects\n}\n";
      const site = placedHere(lines, {
        [`${SITE} {`]: `${SITE}:${port} {\nbind 127.0.0.1\ntls ${caFile} ${keyFile}`,
      });
      return {
        conf: globals + site,
        args: ["run", "--adapter", "caddyfile", "--config", `${folder}/conf`],
      };
    },
  },
];

for (const proxy of PROXIES) {
  testUnless(
    programsMissing(proxy.program, "curl", "openssl"),
    `reverse proxy: behind ${proxy.program} pages know their URL, and bytes come whole`,
    async () => {
      await using upstream = await fakeUpstream({ objects: [OBJECT], stored: true });
      await using larder = await startLarder({
        "cache-upstream-url": upstream.url,
        "cache-upstream-public-key": upstream.publicKey,
        "server-trusted-proxies": "127.0.0.1",
        "server-allowed-hosts": SITE,
      });
      using certificate = new OwnCertificate(`DNS:${SITE}`);
      const port = freePort();
      await using _proxy = startProxy(proxy, port, certificate, {
        "127.0.0.1:8501": `127.0.0.1:${larder.port}`,
      });
      const get = (path: string, ...words: readonly string[]) => {
        const places = ["--cacert", certificate.caFile, "--resolve", `${SITE}:${port}:127.0.0.1`];
        return curl(...places, ...words, `https://${SITE}:${port}${path}`);
      };
      await eventually("the proxy answers", async () => (await get("/healthz")).success);

      const page = await get("/", "-A", "Mozilla/5.0", "-H", "Accept: text/html");
      const html = new TextDecoder().decode(page.stdout);
      assert.ok(html.includes(`https://${SITE}:${port}`), html.slice(0, 2_000));
      assert.ok(!html.includes(`http://${SITE}`));

      const narinfo = await get(`/${OBJECT.storePathHash}.narinfo`);
      const narPath = /^URL: (.*)$/m.exec(new TextDecoder().decode(narinfo.stdout))?.[1];
      const nar = await get(`/${narPath}`);
      assertSameBytes(nar.stdout, (await upstream.narFileOf(OBJECT)).bytes);

      // A client behind the proxy is no operator of this machine.
      const gc = await get("/gc?target=0", "-X", "POST");
      assert.match(new TextDecoder().decode(gc.stdout), /^Forbidden/);
    },
  );
}

Deno.test("reverse proxy: each nginx of documents, deploy and NixOS has the same lines", () => {
  const [source = "", ...more] = locationsIn(DOCUMENT);
  const lines = source.split("\n").map((line) => line.trim()).filter((line) => (
    /^(proxy_http_version|proxy_request_buffering|proxy_set_header|client_max_body_size) /.test(
      line,
    )
  ));
  assert.equal(lines.length, 7);
  const pages = [...Deno.readDirSync(`${ROOT}docs`)].map(({ name }) => `docs/${name}`)
    .filter((name) => name.endsWith(".md") && name !== "docs/reverse-proxy.md");
  const places: readonly (readonly [string, string])[] = [
    ...more.map((text) => ["docs/reverse-proxy.md", text] as const),
    ...[...pages, "README.md", "deploy/several-machines/nginx.conf"].flatMap((path) => (
      locationsIn(Deno.readTextFileSync(ROOT + path)).map((text) => [path, text] as const)
    )),
    ["nix/module.nix", Deno.readTextFileSync(`${ROOT}nix/module.nix`)],
  ];
  assert.ok(places.length >= 4);
  for (const [path, text] of places) {
    for (const line of lines) assert.ok(text.includes(line), `${path} lacks ${line} in\n${text}`);
  }
});

/** The locations of nginx that pass requests on. */
function locationsIn(text: string): readonly string[] {
  return (text.match(/\blocation [^{}]*\{[^{}]*\}/g) ?? [])
    .filter((location) => location.includes("proxy_pass"));
}

function startProxy(
  { heading, program, run }: Proxy,
  port: number,
  certificate: OwnCertificate,
  places: Places,
): AsyncDisposable {
  const folder = tempFolder();
  const fence = new RegExp(`^## ${heading}$.*?^\`\`\`\\w+\\n(.*?)^\`\`\``, "ms").exec(DOCUMENT)
    ?.[1];
  assert.ok(fence, heading);
  const { args, conf } = run(folder.path, placedHere(fence, places), port, certificate);
  Deno.writeTextFileSync(`${folder.path}/conf`, conf);
  const env = { HOME: folder.path, XDG_DATA_HOME: folder.path, XDG_CONFIG_HOME: folder.path };
  const streams = { stdout: "null", stderr: "null" } as const;
  const child = new Deno.Command(program, { args: [...args], env, ...streams }).spawn();
  return {
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.status;
      folder[Symbol.dispose]();
    },
  };
}

async function curl(...args: readonly string[]): Promise<Deno.CommandOutput> {
  return await new Deno.Command("curl", { args: ["-sS", "--max-time", "60", ...args] }).output();
}
