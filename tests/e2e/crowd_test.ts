import assert from "node:assert/strict";
import { alone } from "../support/alone.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { startLarder } from "../support/larder_process.ts";
import { procText } from "../support/proc_text.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { requestText } from "../support/raw_http.ts";
import { servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { TooSlow } from "../support/timed_test.ts";

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
/** Where clients take turns it is 2 to 6; where some wait for the others, over 200. */
const LATE_TIMES_MAX = 40;

testUnless(
  programsMissing("wrk"),
  `crowd: none of ${BUSY} busy clients waits while others are answered again and again`,
  async () => {
    await using larder = await startLarder({
      "cache-upstream-url": [],
      "server-connections-per-address": `${2 * BUSY}`,
    });
    const load = ["-t1", `-c${BUSY}`, "-d4s", "--timeout=30s", "--latency"];
    const output = said("wrk", ...load, `${larder.url}/healthz`);
    const [median = NaN, late = NaN] = [50, 99].map((part) => latencyMs(output, part));
    // A pause of the machine makes some late, too, but not three times.
    if (!(late / median < LATE_TIMES_MAX)) throw new TooSlow(`some wait for others: ${output}`);
  },
);

/** The latency that wrk prints for a percentile. */
function latencyMs(output: string, percent: number): number {
  const [, value, unit] = new RegExp(`^ +${percent}% +([0-9.]+)(us|ms|s)`, "m").exec(output) ?? [];
  return Number(value) * (unit === "us" ? 0.001 : unit === "ms" ? 1 : 1_000);
}

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
