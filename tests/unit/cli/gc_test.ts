import assert from "node:assert/strict";
import { Failure } from "../../../src/base/failure.ts";
import { snakeNames } from "../../../src/base/snake_names.ts";
import type { GcEvent, GcOrder } from "../../../src/space/gc_event.ts";
import { GC_DONE, GcServer } from "../../support/gc_server.ts";
import { runLarder } from "../../support/run_larder.ts";

const GIB = 2 ** 30;

async function* of(...events: readonly GcEvent[]): AsyncGenerator<GcEvent> {
  yield* events;
}

Deno.test("larder gc: it prints the freed bytes, paths and files", async () => {
  await using server = new GcServer(() => of(GC_DONE));

  const ran = await runLarder(["gc", "--server", server.url]);

  assert.deepEqual(ran, {
    status: 0,
    out: "Freed 1.5 GiB: 120 paths, 118 NAR files.\n" +
      "Used now: 7.9 GiB (target 8.0 GiB, limit 10.0 GiB by --cache-max-size).\n",
    err: "",
  });
});

Deno.test("larder gc: a target out of reach ends with 1 and the protected bytes", async () => {
  const kept = { pinnedBytes: 9 * GIB, busyBytes: 512, reservedBytes: 2 * GIB, reached: false };
  await using server = new GcServer(() =>
    of({ ...GC_DONE, ...kept, dryRun: true, limitBytes: null, limitSource: "unlimited" })
  );

  const { status, out } = await runLarder(["gc", "--dry-run", "--server", server.url]);

  assert.equal(status, 1);
  assert.equal(
    out,
    "Would free 1.5 GiB: 120 paths, 118 NAR files.\n" +
      "Used then: 7.9 GiB (target 8.0 GiB, no limit by --cache-max-size unlimited).\n" +
      "Protected: 9.0 GiB pinned, 512 B in use, 2.0 GiB reserved for downloads.\n" +
      "The target was not reached. Pins hold more than that: unpin something (larder pins).\n",
  );
});

for (
  const [what, words, done, advice] of [
    ["a target below the pins", ["--target", "1M"], {}, /pins\)\.\n$/],
    ["a limit below the pins", [], {}, /pins\), or give the server more room \(--cache-max-size\)/],
    ["a disk below the pins", [], { limitSource: "disk" }, /or make room on the server's disk/],
    ["files in use", [], { pinnedBytes: 5, busyBytes: 9 }, /again when the downloads and reads/],
  ] as const
) {
  Deno.test(`larder gc: ${what} is status 1, with the remedy`, async () => {
    const kept = { targetBytes: 8, pinnedBytes: 9, reached: false, ...done };
    await using server = new GcServer(() => of({ ...GC_DONE, ...kept }));

    const { status, out } = await runLarder(["gc", ...words, "--server", server.url]);

    assert.equal(status, 1);
    assert.match(out, advice);
  });
}

Deno.test("larder gc: target and dry run are sent, --json prints how it ended", async () => {
  const orders: GcOrder[] = [];
  await using server = new GcServer((order) => {
    orders.push(order);
    return of(GC_DONE);
  });
  const words = ["gc", "--server", server.url];

  const { status, out } = await runLarder([...words, "--json", "--target", "1.5K", "--dry-run"]);
  await runLarder(words);

  assert.deepEqual([status, JSON.parse(out)], [0, snakeNames(GC_DONE)]);
  assert.deepEqual(orders, [{ targetBytes: 1_536, dryRun: true }, { dryRun: false }]);
});

Deno.test("larder gc: without a limit it says how to give a target", async () => {
  await using server = new GcServer(() => undefined);

  const { status, err } = await runLarder(["gc", "--server", server.url]);

  assert.equal(status, 1);
  assert.match(err, /^larder: [^\n]*no size limit[^\n]*give --target SIZE\n$/);
});

/** A terminal, and when the command has checked it a few times: it does for each line. */
function terminal(): { readonly columns: number; readonly watched: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let looks = 0;
  return {
    watched: promise,
    get columns() {
      if (++looks > 4) resolve();
      return 100;
    },
  };
}

Deno.test("larder gc: on a terminal the progress is shown and wiped", async () => {
  const screen = terminal();
  await using server = new GcServer(async function* () {
    yield { event: "progress", freedBytes: GIB, evictedEntries: 7, usedBytes: 9 * GIB };
    await screen.watched;
    yield GC_DONE;
  });

  const { err } = await runLarder(["gc", "--server", server.url], screen);

  assert.ok(err.includes("\r\x1b[Kfreed 1.0 GiB of 7 paths, 9.0 GiB still used"), err);
  assert.ok(err.endsWith("\r\x1b[K"));
});

Deno.test("larder gc: a server that evicts for its own machine alone says so", async () => {
  const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
  await using server = Deno.serve(options, () => new Response(null, { status: 403 }));

  const url = `http://127.0.0.1:${server.addr.port}`;
  const { status, err } = await runLarder(["gc", "--server", url]);

  assert.equal(status, 1);
  assert.match(err, /the server accepts evictions from its own machine alone: run this there/);
});

for (
  const [what, lines] of [
    ["breaks off", ['{"event":"progress","freed_bytes":1,"evicted_entries":1,"used_bytes":1}']],
    ["is empty", []],
    ["is not larder's", ["<html>"]],
    ["lacks a figure", [JSON.stringify(snakeNames({ ...GC_DONE, pinnedBytes: undefined }))]],
  ] as const
) {
  Deno.test(`larder gc: an answer that ${what} is no success`, async () => {
    const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
    const body = lines.map((line) => `${line}\n`).join("");
    await using server = Deno.serve(options, () => new Response(body));

    const url = `http://127.0.0.1:${server.addr.port}`;
    const { status, out, err } = await runLarder(["gc", "--server", url]);

    assert.deepEqual([status, out], [1, ""]);
    assert.match(err, /^larder: Cannot [^\n]*\n$/);
  });
}

for (
  const [error, said] of [
    [
      new Error("the disk is gone"),
      /larder: Cannot follow the run: it failed; see the server's log/,
    ],
    [
      new Failure("away", "gone"),
      /larder: the run ended early: the database does not answer; try /,
    ],
  ] as const
) {
  Deno.test(`larder gc: a run that fails in the middle is said so: ${error.message}`, async () => {
    const screen = terminal();
    await using server = new GcServer(async function* () {
      yield { event: "progress", freedBytes: 1, evictedEntries: 1, usedBytes: 1 };
      await screen.watched;
      throw error;
    });

    const { status, err } = await runLarder(["gc", "--server", server.url], screen);

    assert.equal(status, 1);
    assert.match(err, said);
  });
}

Deno.test("larder gc: nothing of a strange server's last line reaches the terminal", async () => {
  const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
  const line = JSON.stringify({ event: "failed", part: "\u001b[2J", reason: "\u001b[2J" });
  await using server = Deno.serve(options, () => new Response(`${line}\n`));

  const url = `http://127.0.0.1:${server.addr.port}`;
  const { status, err } = await runLarder(["gc", "--server", url]);

  assert.deepEqual([status, err], [
    1,
    "larder: Cannot follow the run: it failed; see the server's log\n",
  ]);
});
