import assert from "node:assert/strict";
import { clock } from "../../src/runtime/current.ts";
import { alone } from "../support/alone.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { procText } from "../support/proc_text.ts";
import { testUnless } from "../support/program.ts";
import { RawConnection, requestText } from "../support/raw_http.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";

const CROWD = 10_000;
const IDLE_BYTES_MAX = 14 * 1024;
const IDLE_MB_MAX = 300;
const SAMPLES = 50;

const handles = Number(said("sh", "-c", "ulimit -n"));
const excuse = handles > CROWD + 500 ? "" : `only ${handles} files may be open here`;

testUnless(
  excuse,
  `crowd: with ${CROWD} idle connections others are answered, and each holds 14 KiB at most`,
  async () => {
    await using larder = await startLarder({
      "cache-upstream-url": [],
      "server-connections-per-address": `${CROWD}`,
    });
    const { pid } = await larder.logged("server started");
    await ask(larder.url);
    const bytesBefore = residentBytes(Number(pid));
    await using crowd = new Crowd(larder.port);
    await crowd.grow(CROWD);
    await ask(larder.url);
    const bytes = residentBytes(Number(pid));
    const each = (bytes - bytesBefore) / CROWD;
    assert.ok(each < IDLE_BYTES_MAX, `${each} bytes each`);
    assert.ok(bytes / 1e6 < IDLE_MB_MAX, `${bytes / 1e6} MB`);
    await larder.logged("connections closed", ({ reason }) => reason === "making room");
    const lines = larder.lines.filter(({ msg }) => msg === "connections closed");
    assert.ok(lines.length <= 3, `${lines.length} lines`);
  },
);

// More would use up the memory that the kernel gives all connections of this machine. Two such
// crowds at once do, too.
const STALLED = 400;
const STALLED_BYTES_MAX = 160 * 1024;
const STALLED_MB_MAX = 300;

Deno.test(`crowd: ${STALLED} more that take nothing hold 160 KiB each at most`, async () => {
  using _alone = await alone("crowd");
  const object = makeStoreObject({ name: "large", size: 30_000_000 });
  await using upstream = await fakeUpstream({ objects: [object], stored: true });
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
  });
  const narinfo = await servedNarinfo(larder.port, object.storePathHash);
  for (let time = 0; time < 3; time++) await servedNar(larder.port, narinfo);
  const behind = async (crowd: Crowd) => {
    await crowd.grow(STALLED);
    await crowd.send(requestText("GET", narinfo.narPath));
    // It is behind all that the others were sent.
    assert.equal((await servedNar(larder.port, narinfo)).status, 200);
    return residentBytes(larder.pid);
  };
  await using first = new Crowd(larder.port);
  await using second = new Crowd(larder.port);
  const before = await behind(first);
  assert.ok(before / 1e6 < STALLED_MB_MAX, `${before / 1e6} MB`);
  // How much free room the heap had is chance: the first ones have used it up.
  const each = (await behind(second) - before) / STALLED;
  assert.ok(each < STALLED_BYTES_MAX, `${each} bytes each`);
});

/** Fifty new connections are answered. */
async function ask(url: string): Promise<void> {
  for (let sample = 0; sample < SAMPLES; sample++) {
    const answer = await fetch(`${url}/healthz`, { headers: { connection: "close" } });
    assert.equal(await answer.text(), "OK\n");
  }
}

function residentBytes(pid: number): number {
  return 1_024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(procText(`/proc/${pid}/status`))?.[1]);
}

/** The output of a program. */
function said(program: string, ...args: readonly string[]): string {
  const { stdout } = new Deno.Command(program, { args: [...args] }).outputSync();
  return new TextDecoder().decode(stdout).trim();
}

Deno.test("crowd: where the system has few file handles, some are left for files", async () => {
  const limited = ["sh", "-c", 'ulimit -n 256 && exec "$@"', "limited"];
  await using larder = await startLarder({ "cache-upstream-url": [] }, {}, limited);
  await using crowd = new Crowd(larder.port);
  await crowd.grow(400);
  await larder.logged("connections closed", ({ reason }) => reason === "cannot accept");
  const answer = await fetch(`${larder.url}/healthz`);
  assert.equal(await answer.text(), "OK\n");
});

// Deno serves 128 ready sockets in a turn of its event loop.
const BUSY = 400;
const ANSWERS = 20;
const ANSWERED_MAX_MS = 60_000;

Deno.test(`crowd: each of ${BUSY} busy clients gets all its answers`, async () => {
  await using larder = await startLarder({
    "cache-upstream-url": [],
    "server-connections-per-address": `${2 * BUSY}`,
  });
  const clients = Array.from({ length: BUSY }, async () => {
    await using connection = await RawConnection.open(larder.port);
    const statuses: number[] = [];
    while (statuses.length < ANSWERS) {
      await connection.send("GET /healthz HTTP/1.1\r\nHost: larder\r\n\r\n");
      const { status, reader } = await connection.answer();
      await reader.read();
      statuses.push(status);
    }
    return statuses;
  });
  const answers = await clock.within(Promise.all(clients), ANSWERED_MAX_MS);
  assert.ok(answers, "none waits for others to end");
  assert.ok(answers.flat().every((status) => status === 200));
});

/** Connections that take nothing. */
class Crowd implements AsyncDisposable {
  readonly #port: number;
  readonly #connections: Deno.Conn[] = [];

  constructor(port: number) {
    this.#port = port;
  }

  async grow(count: number): Promise<void> {
    const place = { hostname: "127.0.0.1", port: this.#port };
    while (this.#connections.length < count) {
      const some = Array.from({ length: 100 }, () => Deno.connect(place));
      this.#connections.push(...await Promise.all(some));
    }
  }

  async send(text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text);
    for (const connection of this.#connections) await connection.write(bytes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.close();
  }
}
