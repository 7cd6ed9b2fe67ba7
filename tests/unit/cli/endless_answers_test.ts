import assert from "node:assert/strict";
import type { Bytes } from "../../../src/base/bytes.ts";
import { boundedText } from "../../../src/base/bounded_text.ts";
import { answerText } from "../../../src/cli/client/server_answer.ts";
import { followedEvents } from "../../../src/cli/gc.ts";
import { ServerClient } from "../../../src/cli/client/server_client.ts";
import { ownSubstituters } from "../../../src/cli/doctor/client_check.ts";
import { lookAtServer } from "../../../src/cli/doctor/server_check.ts";
import { endlessBody } from "../../support/endless_body.ts";
import { runLarder } from "../../support/run_larder.ts";
import { makeStoreObject } from "../../support/store_object.ts";

const object = makeStoreObject({ name: "hello-1.0" });
const PIECE = new Uint8Array(64 * 1024).fill(32);
const PROGRESS = '{"event":"progress","freed_bytes":1,"evicted_entries":1,"used_bytes":1}\n';

/** More than any answer of larder but the list of pins. */
const SENT_MAX = 64 << 20;

/** A server whose answers have no end, but those of `/readyz` and `/healthz`. */
function endlessServer(bytes: Uint8Array<ArrayBuffer>, narinfo?: string) {
  let sentBytes = 0;
  const body = () =>
    endlessBody(() => {
      sentBytes += bytes.length;
      return bytes;
    });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
    const { pathname } = new URL(url);
    if (pathname === "/readyz" || pathname === "/healthz") return new Response("ok");
    if (pathname.endsWith(".narinfo") && narinfo !== undefined) return new Response(narinfo);
    return new Response(body());
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  const sent = () => sentBytes;
  return { url, sent, [Symbol.asyncDispose]: () => server.shutdown() };
}

const COMMANDS: readonly (readonly [words: readonly string[], sentence: RegExp])[] = [
  [
    ["explain", object.storePath],
    /Cannot read \/explain: the answer is over 8\.0 MiB; is it larder/,
  ],
  [["explain", "hello"], /Cannot read \/explain: the answer is over 8\.0 MiB; is it larder/],
  [["status", "--strict"], /Cannot read \/stats: the answer is over 8\.0 MiB; is it larder/],
  [["warm", object.storePath], /Cannot read \/\S+\.narinfo: the answer is over/],
  [["plan", object.storePath], /Cannot read the plan: is the server larder/],
  [["gc"], /Cannot read the run's progress: is the server larder/],
];

for (const [words, sentence] of COMMANDS) {
  Deno.test(`endless answers: larder ${words.join(" ")} says so`, async () => {
    await using server = endlessServer(PIECE);
    const { status, out, err } = await runLarder([...words, "--server", server.url]);
    assert.equal(status, 1);
    assert.match(out + err, sentence);
    assert.ok(server.sent() < SENT_MAX, `${server.sent()} bytes`);
  });
}

Deno.test("endless answers: larder gc ends when its reports have no end", async () => {
  await using server = endlessServer(new TextEncoder().encode(PROGRESS.repeat(500)));
  const { status, err } = await runLarder(["gc", "--server", server.url]);
  assert.equal(status, 1);
  assert.match(err, /Cannot read the run's progress: is the server larder/);
});

Deno.test("endless answers: larder pins gives up a gzip file that unpacks to more than pins", async () => {
  for (
    const [text, sentence] of [[" ", /the answer is over 32\.0 MiB/], [
      "{},",
      /too many values/,
    ]] as const
  ) {
    const plain = `[${text}`.padEnd(text === " " ? 64 << 20 : 16 << 20, text);
    const zipped = await new Response(
      new Blob([plain]).stream().pipeThrough(new CompressionStream("gzip")),
    ).bytes();
    const headers = { "content-encoding": "gzip" };
    const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
    await using server = Deno.serve(options, () => new Response(zipped, { headers }));
    const url = `http://127.0.0.1:${server.addr.port}`;
    const { status, err } = await runLarder(["pins", "--server", url]);
    assert.equal(status, 1);
    assert.match(err, sentence);
  }
});

for (
  const [what, line, limits] of [
    ["reports the same for ever", () => PROGRESS, { standstillMs: 20 }],
    ["sends a report byte by byte", () => " ", { standstillMs: 20 }],
    [
      "counts up for ever",
      (at: number) => PROGRESS.replaceAll("1", String(at)),
      { runMs: 20 },
    ],
  ] as const
) {
  Deno.test(`endless answers: larder gc leaves a server that ${what}`, async () => {
    let at = 1;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const body = new ReadableStream<Bytes>({
      async pull(controller) {
        await new Promise<void>((resolve) => timer = setTimeout(resolve, 1));
        controller.enqueue(new TextEncoder().encode(line(++at)));
      },
      cancel: () => clearTimeout(timer),
    });
    await assert.rejects(
      Array.fromAsync(followedEvents(new Response(body), limits)),
      /^Failure: Cannot follow the run: it has no new figures, or no end$/,
    );
  });
}

Deno.test("endless answers: larder doctor takes their server for another program", async () => {
  await using server = endlessServer(PIECE);
  using client = new ServerClient({ server: { kind: "http", url: server.url }, token: undefined });
  const state = await lookAtServer({ shown: server.url, client });
  assert.equal(state.kind, "other program");
  const order = { substituters: [server.url], url: undefined, publicKey: "key:1" };
  assert.deepEqual([...await ownSubstituters(order)], []);
  assert.ok(server.sent() < SENT_MAX, `${server.sent()} bytes`);
});

Deno.test("endless answers: larder warm reads no more of a NAR than it can have", async () => {
  for (const fileSize of ["FileSize: 100000\n", ""]) {
    const narinfo = `StorePath: ${object.storePath}
URL: nar/${object.narHash}.nar
Compression: none
NarHash: sha256:${object.narHash}
NarSize: ${object.narSize}
References: 
${fileSize}`;
    await using server = endlessServer(PIECE, narinfo);
    const { status, err } = await runLarder(["warm", object.storePath, "--server", server.url]);
    assert.equal(status, 1);
    assert.match(err, /its NAR file is over/);
    assert.ok(server.sent() < SENT_MAX, `${server.sent()} bytes`);
  }
});

Deno.test("endless answers: one that never ends, byte by byte, is given up in time", async () => {
  let cancelled = false;
  const body = () =>
    new ReadableStream({
      type: "bytes",
      async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        controller.enqueue(new Uint8Array(1));
      },
      cancel: () => void (cancelled = true),
    });
  const client = { request: () => Promise.resolve(new Response(body())) };
  await assert.rejects(
    answerText(client, "/stats?range=day", { limitMs: 20 }),
    /^Failure: Cannot read \/stats: the answer did not end within 1 second; is it larder\?$/,
  );
  assert.equal(cancelled, true);
  await assert.rejects(boundedText(new Response(body()), { bytesMax: 5 }), /is over 5 B/);
});
