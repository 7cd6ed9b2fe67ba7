import assert from "node:assert/strict";
import { type MeasureTurn, MeasureTurns } from "../../../src/cache/verify/measure_turns.ts";

const SLICE_MS = 48;
const ENDLESS = 1_000;
const MIB = 1 << 20;

interface JobParts {
  readonly client?: string;
  /** The slices that it needs. */
  readonly slices?: number;
  readonly budgetMs?: number;
  /** Memory that its first slices claim. */
  readonly claims?: readonly number[];
  readonly bytesPerSlice?: number;
  /** Its input ends for now behind so many slices. */
  readonly starvesAfter?: number;
}

/** A thread whose slices end one by one, when the test says so. */
class Thread {
  nowMs = 0;
  /** The names of the jobs, in the order of their slices. */
  readonly ran: string[] = [];
  readonly over: string[] = [];
  readonly givenUp: string[] = [];
  readonly #turns: MeasureTurns;
  #endSlice: (() => void) | undefined;

  constructor(memoryBytes = 1_000 * MIB) {
    this.#turns = new MeasureTurns({ memoryBytes, nowMs: () => this.nowMs });
  }

  add(name: string, parts: JobParts = {}): MeasureTurn {
    const { client, slices = 1, budgetMs = Infinity, claims = [], bytesPerSlice = MIB } = parts;
    const { starvesAfter } = parts;
    let [left, decodedBytes, claimed] = [slices, 0, 0];
    const turn = this.#turns.enter({
      client,
      budgetMs,
      run: () => {
        assert.equal(this.#endSlice, undefined, "one job runs at a time");
        this.#endSlice = () => {
          const claim = claims[claimed++];
          if (claim !== undefined) return turn.paused({ usedMs: 0.01, decodedBytes: 0 }, claim);
          this.ran.push(name);
          this.nowMs += SLICE_MS;
          decodedBytes += bytesPerSlice;
          const wanted = slices - left + 1 === starvesAfter ? undefined : 0;
          if (--left > 0) return turn.paused({ usedMs: SLICE_MS, decodedBytes }, wanted);
          this.over.push(name);
          turn[Symbol.dispose]();
        };
      },
      giveUp: () => void this.givenUp.push(name),
    });
    turn.wants();
    return turn;
  }

  /** Ends so many slices; claims of memory count, too. */
  run(slices: number): void {
    for (let left = slices; left > 0; left--) {
      const end = this.#endSlice;
      if (end === undefined) return;
      this.#endSlice = undefined;
      end();
    }
  }
}

Deno.test("measure turns: a small job of the same client passes eight large ones that run", () => {
  const thread = new Thread();
  for (let at = 0; at < 8; at++) thread.add(`bomb ${at}`, { client: "one", slices: ENDLESS });
  thread.run(100);
  thread.add("honest", { client: "one" });
  thread.run(2);
  assert.deepEqual(thread.over, ["honest"]);
});

Deno.test("measure turns: a client's large job gets half, however many another one has", () => {
  const thread = new Thread();
  for (let at = 0; at < 50; at++) thread.add("many", { client: "one", slices: ENDLESS });
  thread.add("single", { client: "other", slices: ENDLESS });
  thread.run(200);
  const share = thread.ran.filter((name) => name === "single").length;
  assert.ok(Math.abs(share - 100) <= 2, `${share} of 200 slices`);
});

Deno.test("measure turns: a client that used much yields to others until that is long ago", () => {
  const thread = new Thread();
  thread.add("first", { client: "one", slices: 10 });
  thread.run(10);
  thread.add("runs", { client: "third", slices: 2 });
  thread.add("again", { client: "one" });
  thread.add("other", { client: "other" });
  thread.run(4);
  assert.deepEqual(thread.over, ["first", "other", "runs", "again"]);
  thread.nowMs += 200_000;
  thread.add("runs", { client: "third" });
  thread.add("again", { client: "one" });
  thread.add("other", { client: "other" });
  thread.run(3);
  assert.deepEqual(thread.over.slice(-3), ["runs", "again", "other"], "all of it is forgotten");
});

Deno.test("measure turns: a job beyond its budget runs only while nobody else waits", () => {
  const thread = new Thread();
  thread.add("dear", { client: "idle", slices: ENDLESS, budgetMs: 2 * SLICE_MS });
  thread.run(5);
  assert.deepEqual(thread.ran, Array(5).fill("dear"));
  thread.add("busy", { client: "busy", slices: 20 });
  thread.run(21);
  assert.deepEqual(thread.ran.slice(6), Array(20).fill("busy"));
  thread.run(1);
  assert.equal(thread.ran.at(-1), "dear");
});

Deno.test("measure turns: where memory runs short, the largest job is given up for a smaller", () => {
  const thread = new Thread(200 * MIB);
  const claims = [65 * MIB];
  for (const [name, bytesPerSlice] of [["a", 1], ["b", 3], ["c", 2]] as const) {
    thread.add(name, { slices: ENDLESS, claims, bytesPerSlice });
  }
  thread.run(30);
  assert.deepEqual(thread.givenUp, []);
  thread.add("small", { claims });
  thread.run(4);
  assert.deepEqual([thread.givenUp, thread.over], [["b"], ["small"]]);
});

Deno.test("measure turns: a job that waits for its own client is given up first", () => {
  const thread = new Thread(200 * MIB);
  const claims = [100 * MIB];
  const idle = { slices: ENDLESS, claims, bytesPerSlice: 1, starvesAfter: 1 };
  thread.add("idle", idle);
  thread.run(2);
  thread.add("large", { slices: ENDLESS, claims });
  thread.run(10);
  thread.add("next", { claims });
  thread.run(4);
  assert.deepEqual([thread.givenUp, thread.over], [["idle"], ["next"]]);
});

Deno.test("measure turns: no job is given up for a larger one, which waits", () => {
  const thread = new Thread(100 * MIB);
  const claims = [100 * MIB];
  thread.add("first", { slices: 5, claims, bytesPerSlice: 0 });
  thread.run(2);
  thread.add("later", { claims, bytesPerSlice: 0 });
  thread.run(20);
  assert.deepEqual([thread.givenUp, thread.over], [[], ["first", "later"]]);
});

Deno.test("measure turns: jobs that all hold memory and want more make room for one another", () => {
  const thread = new Thread(192 * MIB);
  const names = Array.from({ length: 64 }, (_, at) => `bomb ${at}`);
  for (const name of names) {
    thread.add(name, { client: "one", claims: [16 * MIB, 17 * MIB], slices: 5 });
  }
  thread.run(1_000);
  assert.deepEqual([...thread.over, ...thread.givenUp].sort(), names.toSorted());
  assert.ok(thread.over.length >= 5, `${thread.over.length} ended`);
});
