import assert from "node:assert/strict";
import { startLarder } from "../support/larder_process.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { tempFolder } from "../support/temp_folder.ts";
import { OwnCertificate } from "../support/tls_front.ts";

const BROWSER = { "Sec-Fetch-Site": "same-origin" };
const NO_UPSTREAM = { "cache-upstream-url": "http://127.0.0.1:1" };

/** An address of this machine that is not the loopback one. */
const address = Deno.networkInterfaces()
  .find(({ family, address }) => family === "IPv4" && !address.startsWith("127."))?.address;

Deno.test("access: the names that are configured are ours, and no others", async () => {
  await using larder = await startLarder({
    ...NO_UPSTREAM,
    "cache-hostname": "cache.lan",
    "server-allowed-hosts": ["cache.example.org", "cache.example.net"],
  });
  const statusUnder = async (host: string) => {
    const text = requestText("GET", "/stats", { ...BROWSER, Host: host });
    return (await rawRequest(larder.port, text)).status;
  };
  const ours = ["cache.lan", "cache.example.org", "cache.example.net:8501", Deno.hostname()];
  const atHome = `${Deno.hostname().replace(/\..*/, "")}.fritz.box`;
  for (const host of [...ours, atHome, "localhost", "127.0.0.1"]) {
    assert.equal(await statusUnder(host), 200, host);
  }
  for (const host of ["example.org", "x.cache.lan", "cache.example.org.evil.example"]) {
    assert.equal(await statusUnder(host), 403, host);
  }
});

const excuse = programsMissing("curl", "openssl") ||
  (address === undefined ? "this machine has the loopback address alone" : "");

testUnless(excuse, "access: another machine evicts nothing, over HTTP, HTTPS or any", async () => {
  using certificate = new OwnCertificate();
  const tls = { "server-tls-cert": certificate.caFile, "server-tls-key": certificate.keyFile };
  for (const flags of [{}, tls]) {
    await using larder = await startLarder({ ...NO_UPSTREAM, ...flags, "server-addr": ":0" });
    const { protocol, port } = new URL(larder.url);
    const gc = (host: string) => curl(`${protocol}//${host}:${port}/gc?target=0`);
    assert.equal(await gc("127.0.0.1"), "200", protocol);
    assert.equal(await gc(String(address)), "403", protocol);
  }
});

testUnless(programsMissing("curl"), "access: the Unix socket may evict", async () => {
  using folder = tempFolder();
  const socket = `${folder.path}/larder.sock`;
  await using _larder = await startLarder({ ...NO_UPSTREAM, "server-addr": `unix:${socket}` });
  assert.equal(await curl("http://any/gc?target=0", "--unix-socket", socket), "200");
  const forwarded = ["-H", "X-Forwarded-For: 192.0.2.7"];
  assert.equal(await curl("http://any/gc?target=0", "--unix-socket", socket, ...forwarded), "403");
});

/** The status of a POST. */
async function curl(url: string, ...more: readonly string[]): Promise<string> {
  const options = ["--silent", "--insecure", "--request", "POST", "--noproxy", "*", ...more];
  const args = [...options, "--output", "/dev/null", "--write-out", "%{http_code}", url];
  const { stdout } = await new Deno.Command("curl", { args }).output();
  return new TextDecoder().decode(stdout);
}
