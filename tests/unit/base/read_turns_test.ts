import assert from "node:assert/strict";
import { Failure } from "../../../src/base/failure.ts";
import { ReadTurns } from "../../../src/base/read_turns.ts";

/** Reads that the test ends, in the order of their begin. */
function scene(limits: ConstructorParameters<typeof ReadTurns>[0] = {}) {
  const turns = new ReadTurns(limits);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const read = (key: string, client = "a", signal = new AbortController().signal) =>
    turns.run({ client, signal }, {
      key,
      run: async (ending) => {
        begun.push(key);
        const { promise, resolve, reject } = Promise.withResolvers<string>();
        ends.set(key, () => resolve(`${key} of ${begun.length}`));
        ending.addEventListener("abort", () => {
          begun.push(`${key} ended`);
          reject(ending.reason);
        });
        return await promise;
      },
    });
  const turn = () => new Promise((resolve) => setTimeout(resolve, 0));
  const end = async (key: string) => {
    ends.get(key)?.();
    await turn();
  };
  return { turns, begun, read, end, turn };
}

const isBusy = (error: unknown) => error instanceof Failure && error.kind === "busy";

Deno.test("read turns: one read runs at a time, and clients take turns", async () => {
  const { begun, read, end } = scene();
  const all = [read("1"), read("2"), read("3"), read("4", "b"), read("5", "c")];
  for (const key of ["1", "2", "4", "5", "3"]) await end(key);
  await Promise.all(all);
  assert.deepEqual(begun, ["1", "2", "4", "5", "3"]);
});

Deno.test("read turns: the addresses of an IPv6 network are one client", async () => {
  const { begun, read, end } = scene();
  const all = ["1", "2", "3"].map((key) => read(key, `2001:db8::${key}`));
  all.push(read("4", "2001:db8:0:1::4"));
  for (const key of ["1", "2", "4", "3"]) await end(key);
  await Promise.all(all);
  assert.deepEqual(begun, ["1", "2", "4", "3"]);
});

Deno.test("read turns: those that wait for one read share it; a running one may be too old", async () => {
  const { begun, read, end } = scene();
  const [first, second, third] = [read("same"), read("same"), read("same", "b")];
  await end("same");
  assert.equal(await first, "same of 1");
  await end("same");
  assert.deepEqual([await second, await third], ["same of 2", "same of 2"]);
  assert.deepEqual(begun, ["same", "same"]);
});

Deno.test("read turns: a read ends when its last client leaves, not before", async () => {
  const { begun, read, end, turn } = scene();
  const [one, other, third] = [1, 2, 3].map(() => new AbortController());
  const running = read("1", "a", one?.signal);
  const shared = [read("2", "a", other?.signal), read("2", "b", third?.signal)];
  const gone = [running, ...shared].map((promise) => assert.rejects(promise, /gone/));
  one?.abort(new Error("gone"));
  await turn();
  assert.deepEqual(begun, ["1", "1 ended", "2"], "the next one has its turn");
  other?.abort(new Error("gone"));
  await turn();
  assert.deepEqual(begun.length, 3, "another client waits for it");
  third?.abort(new Error("gone"));
  await Promise.all(gone);
  await end("1");
  assert.deepEqual(begun, ["1", "1 ended", "2", "2 ended"]);
});

Deno.test("read turns: of a thousand abandoned reads none begins", async () => {
  const { begun, read, end, turn } = scene({ waitingMax: 2_000 });
  const first = read("first");
  const client = new AbortController();
  const reads = Array.from({ length: 1_000 }, (_, at) => read(`${at}`, "b", client.signal));
  const gone = reads.map((promise) => assert.rejects(promise, /gone/));
  client.abort(new Error("gone"));
  await Promise.all(gone);
  await end("first");
  await turn();
  assert.deepEqual([await first, begun], ["first of 1", ["first"]]);
});

Deno.test("read turns: a full queue refuses at once, and nobody fills it for others", async () => {
  const { read, end } = scene({ waitingMax: 4 });
  const running = read("running", "a");
  const waiting = [1, 2, 3, 4].map((at) => read(`${at}`, "a"));
  await assert.rejects(read("5", "a"), isBusy);
  const refused = assert.rejects(waiting.pop() ?? running, isBusy);
  const other = read("other", "b");
  await refused;
  for (const key of ["running", "1", "other", "2", "3"]) await end(key);
  assert.equal((await Promise.all([running, other, ...waiting])).length, 5);
});

Deno.test("read turns: a read that waits or runs for too long is given up", async () => {
  const waits = scene({ waitMaxMs: 1 });
  const running = waits.read("running");
  await assert.rejects(waits.read("late"), isBusy);
  await waits.end("running");
  await running;
  const runs = scene({ runMaxMs: 1 });
  await assert.rejects(runs.read("long"), isBusy);
  assert.deepEqual(runs.begun, ["long", "long ended"]);
});

Deno.test("read turns: the disposal ends the running read, and refuses all others", async () => {
  const { turns, begun, read } = scene();
  const refused = [read("1"), read("2")].map((promise) => assert.rejects(promise, isBusy));
  turns[Symbol.dispose]();
  await Promise.all([...refused, assert.rejects(read("3"), isBusy)]);
  assert.deepEqual(begun, ["1", "1 ended"]);
});
