import assert from "node:assert/strict";
import { startLarder } from "../support/larder_process.ts";
import { testSocket } from "../support/test_socket.ts";

const NO_UPSTREAM = { "cache-upstream-url": [] };

Deno.test("address: a host in brackets is served over IPv6", async () => {
  await using larder = await startLarder({ ...NO_UPSTREAM, "server-addr": "[::1]:0" });
  assert.match(larder.url, /^http:\/\/\[::1\]:\d+$/);
  assert.equal(await textOf(`${larder.url}/healthz`), "OK\n");
});

Deno.test("address: without a host it is served over IPv4 and IPv6", async () => {
  await using larder = await startLarder({ ...NO_UPSTREAM, "server-addr": ":0" });
  for (const host of ["127.0.0.1", "[::1]"]) {
    assert.equal(await textOf(`http://${host}:${larder.port}/healthz`), "OK\n");
  }
});

Deno.test("address: a Unix socket is served, also one that a killed server left", async () => {
  using socket = testSocket();
  const { path } = socket;
  for (let time = 0; time < 2; time++) {
    await using larder = await startLarder({ ...NO_UPSTREAM, "server-addr": `unix:${path}` });
    assert.equal(larder.url, `unix:${path}`);
    using client = Deno.createHttpClient({ proxy: { transport: "unix", path } });
    const answer = await fetch("http://127.0.0.1/healthz", { client });
    assert.equal(await answer.text(), "OK\n");
    larder.kill("SIGKILL");
    await larder.ended;
    assert.ok(Deno.lstatSync(path).isSocket);
  }
});

Deno.test("address: the page opened at localhost has lines for other machines", async () => {
  await using larder = await startLarder({ ...NO_UPSTREAM, "server-addr": ":0" });
  for (const host of ["localhost", "127.0.0.1", "[::1]"]) {
    const url = `http://${host}:${larder.port}/`;
    const html = await textOf(url, { accept: "text/html" });
    const [, shown = ""] = /extra-substituters = (http:\S+)/.exec(html) ?? [];
    assert.equal(new URL(shown).port, String(larder.port));
    assert.doesNotMatch(shown, /\/\/(localhost|127\.|\[::1\])/);
  }
});

Deno.test("address: the page of a larder that listens at one address keeps that", async () => {
  await using larder = await startLarder({ ...NO_UPSTREAM, "server-addr": "127.0.0.1:0" });
  const html = await textOf(`${larder.url}/`, { accept: "text/html" });
  assert.ok(html.includes(`extra-substituters = ${larder.url}\n`));
});

/** By a process of its own: tests may reach 127.0.0.1 only. */
async function textOf(url: string, headers: Record<string, string> = {}): Promise<string> {
  const init = JSON.stringify({ headers });
  const script = `console.log(await (await fetch("${url}", ${init})).text())`;
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", script],
    env: { NO_COLOR: "1" },
  }).output();
  const [said, complaint] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  assert.ok(said, complaint);
  return said.slice(0, -1);
}
