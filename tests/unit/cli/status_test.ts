import assert from "node:assert/strict";
import { ServerJson } from "../../../src/cli/client/server_json.ts";
import { statusScreen } from "../../../src/cli/status/status_screen.ts";
import { type EventKind, EVENTS } from "../../../src/telemetry/events.ts";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { freePort } from "../../support/free_port.ts";
import { runLarder } from "../../support/run_larder.ts";
import { makeStoreObject } from "../../support/store_object.ts";
import { TestCache } from "../../support/test_cache.ts";

const object = makeStoreObject({ name: "firefox-130.0", size: 40_000 });
const MAIN = new URL("../../../main.ts", import.meta.url).pathname;

/** A server that answers each path with a status and a text. */
function serverOf(answers: Readonly<Record<string, readonly [status: number, text: string]>>) {
  const asked: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { pathname } = new URL(request.url);
    asked.push(`${request.method} ${pathname}`);
    const [status = 404, text = ""] = answers[pathname] ?? [];
    return new Response(text, { status });
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  return { asked, url, [Symbol.asyncDispose]: () => server.shutdown() };
}

Deno.test("status: one screen tells how it is, the verdict first", async () => {
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using cache = await TestCache.open({ upstreams: [upstream] });
  await using server = cache.listen();
  await (await cache.get(await cache.narPath(object.storePathHash))).bytes();
  await cache.request("POST", `/pin/${object.storePathHash}.narinfo`);
  await cache.downloadsOver();

  const { status, out, err } = await runLarder(["status", "--server", server.url]);

  assert.deepEqual([status, err], [0, ""]);
  const lines = out.trimEnd().split("\n");
  assert.match(lines[0] ?? "", new RegExp(`^larder \\S+ answers at ${server.url}, up \\d s$`));
  assert.equal(lines[1], "✓ All is well");
  assert.match(out, /^Requests {3}1 narinfo, 0 % hits\n {11}1 NAR, 0 % hits$/m);
  assert.match(
    out,
    /^Saved {6}0 B of 39\.\d KiB served, 39\.\d KiB fetched, since \d+ \w+ \d{4}$/m,
  );
  assert.match(
    out,
    /^Space {6}39\.\d KiB used, no limit \(--cache-max-size unlimited\), 39\.\d KiB pinned$/m,
  );
  assert.match(
    out,
    new RegExp(
      `^Upstreams  ✓ ${upstream.url} +up, (NAR )?found (just now|\\d s ago); median [^;]+$`,
      "m",
    ),
  );
  assert.match(out, /^Pins {7}1 root$/m);
});

const ON_FIRE = JSON.stringify({
  at: "2026-01-02T12:00:00.000Z",
  version: "0.1.0",
  verdict: {
    is_well: false,
    text: "1 of 2 upstreams down",
    faults: [{ level: "error", text: "https://other.example is down" }],
  },
  lifetime: { since: "2026-01-01T00:00:00.000Z" },
  uptime_seconds: 273_600,
  size: { used_bytes: 1 << 29, limit_bytes: 1 << 30, reserved_bytes: 1024, pinned_bytes: 0 },
  upstreams: [
    { url: "https://one.example", is_up: true, sends_nars: true, last_answer: null },
    {
      url: "https://other.example",
      is_up: false,
      last_answer: { result: "timeout", at: "2026-01-02T11:58:00.000Z" },
      last_error: { reason: "timeout", at: "2026-01-02T11:58:00.000Z" },
    },
  ],
  downloads: {
    count: 1,
    under_way: [{
      nar: "x.nar",
      name: "a-1",
      ...{ received_bytes: 512, file_bytes: 1024, bytes_per_second: 0, client_count: 2 },
    }],
  },
  problems: [{
    level: "error",
    ...{ part: "stored-nar-damaged", event: "stored-nar-damaged" },
    message: "stored nar is\u001b[2J damaged",
    facts: { nar: "x.nar", name: "a-1", hint: "run larder fsck" },
    count: 3,
    last_at: "2026-01-02T11:50:00.000Z",
  }],
});

Deno.test("status: problems come first, and are status 1 with --strict", async () => {
  await using server = serverOf({ "/readyz": [200, "OK\n"], "/stats": [200, ON_FIRE] });
  const words = ["status", "--server", server.url];

  const { status, out } = await runLarder(words);
  assert.equal(status, 0);
  assert.equal(
    out.replace(server.url, "URL"),
    `larder 0.1.0 answers at URL, up 3 d 4 h
✗ 1 of 2 upstreams down
  ✗ https://other.example is down

Requests   0 narinfos
           0 NARs
Saved      0 B of 0 B served, 0 B fetched, since 1 January 2026
Space      [##########----------] 512.0 MiB of 1.0 GiB, 1.0 KiB reserved
Upstreams  ✓ https://one.example                 up, no request yet
           ✗ https://other.example               down: it did not answer in time (2 min ago)
Downloads  a-1                                 50 %, 512 B of 1.0 KiB, waiting for data, 2 clients
Problems   ✗ Stored NAR is\\u001b[2J damaged (3 times, 10 min ago): a-1
             run larder fsck
`,
  );
  assert.equal((await runLarder([...words, "--strict"])).status, 1);
  const told = await runLarder([...words, "--json"]);
  assert.equal(JSON.parse(told.out).downloads.under_way[0].received_bytes, 512);
  for (const columns of [20, 40]) {
    const narrow = await runLarder(words, { columns });
    assert.deepEqual(narrow.out.split("\n").filter((line) => line.length > columns), []);
  }
});

Deno.test("status: an outage of two upstreams is one problem with one thing to do", () => {
  const at = "2026-01-02T12:00:00.000Z";
  const problem = (event: EventKind, host: string) => ({
    ...{
      level: "warn",
      part: "upstreams",
      event,
      message: EVENTS[event].words,
      count: 2,
      first_at: at,
      last_at: at,
      over_at: null,
    },
    facts: { upstream: `https://${host}.example`, hint: `hint of ${EVENTS[event].words}` },
  });
  const problems = [problem("upstream-failed", "a"), problem("upstream-down", "b")];
  const stats = new ServerJson({ at, problems });
  const screen = statusScreen({ server: "URL", stats }, { columns: undefined, rows: undefined });
  assert.equal(
    screen.slice(screen.indexOf("Problems")),
    "Problems   ! Upstream is down (4 times, just now): " +
      "https://b.example; Upstream failed, https://a.example\n" +
      "             hint of upstream is down\n",
  );
});

Deno.test("status: figures that are not to be had change nothing for a health check", async () => {
  for (
    const [stats, reason] of [[[401, ""], /token/], [[200, "<html>"], /is it larder/]] as const
  ) {
    await using server = serverOf({ "/readyz": [200, "OK\n"], "/stats": stats });

    const { status, out, err } = await runLarder(["status", "--server", server.url]);

    assert.deepEqual([status, out], [0, `larder answers at ${server.url}\n`]);
    assert.match(err, /^larder: Cannot show figures: [^\n]+\n$/);
    assert.match(err, reason);
    assert.deepEqual(server.asked, ["GET /readyz", "GET /stats"]);
  }
});

Deno.test("status: a larder that stops, or none, is exit status 1, with what to do", async () => {
  await using server = serverOf({ "/readyz": [503, ""] });
  const stopping = await runLarder(["status", "--server", server.url]);
  assert.deepEqual([stopping.status, stopping.out], [1, ""]);
  assert.equal(stopping.err, `larder: ${server.url} is stopping: /readyz is 503\n`);

  const ran = await runLarder(["status", "--server", `http://127.0.0.1:${freePort()}`]);
  assert.equal(ran.status, 1);
  assert.match(ran.err, /Cannot reach http:.*is larder running\?/);
});

Deno.test("status --watch: a screen every two seconds, until the reader leaves", async () => {
  await using server = serverOf({ "/readyz": [200, "OK\n"], "/stats": [200, ON_FIRE] });
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--cached-only", "-A", MAIN, "status", "--watch", "--server", server.url],
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let seen = "";
  while (seen.split("answers at").length < 3) seen += (await reader.read()).value ?? "";
  await reader.cancel();

  assert.equal((await child.status).code, 0);
});
