import { SizeLimit } from "../../../src/space/size_limit.ts";
import assert from "node:assert/strict";
import type { MetadataStore } from "../../../src/metadata/metadata_store.ts";
import { clock, playRuntime } from "../../../src/runtime/current.ts";
import { ActiveReads } from "../../../src/space/active_reads.ts";
import { assembleSpace } from "../../../src/space/assemble_space.ts";
import type { Space } from "../../../src/space/space.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";

const GIB = 2 ** 30;

Deno.test("grant: two members together never promise more than the limit", async () => {
  const storage = new Storage(1_000);
  const [one, other] = [await storage.member("one"), await storage.member("other")];
  using first = await one.reserve(600);
  assert.ok(first);
  // The heartbeat gives back the bytes granted beyond it.
  await one.beat();
  assert.equal(await other.reserve(401), undefined);
  using second = await other.reserve(400);
  assert.ok(second);
  assert.equal(await one.reserve(1), undefined);
  assert.equal(one.budget.reservedBytes, 1_000);

  first[Symbol.dispose]();
  await one.beat();

  using third = await other.reserve(600);
  assert.ok(third);
  assert.equal((await storage.metadata.stock()).reservedBytes, 1_000);
});

Deno.test("grant: a member is open once the storage knows it", async () => {
  const storage = new Storage(1_000);
  const answer = Promise.withResolvers<void>();
  storage.beatAnswer = answer.promise;
  let isOpen = false;
  const opening = storage.member("one").then(() => isOpen = true);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(isOpen, false);
  answer.resolve();
  await opening;
});

Deno.test("grant: most reservations need no transaction", async () => {
  const storage = new Storage(50 * GIB);
  const space = await storage.member("one");
  const held = [];
  for (let count = 0; count < 2_000; count++) held.push(await space.reserve(100_000));
  assert.ok(held.every((one) => one !== undefined));
  assert.ok(storage.reserves <= 5, `${storage.reserves} transactions`);
});

Deno.test("grant: a member takes little more than it needs from the others", async () => {
  // Of a small limit a share of it, of a large one 64 MiB.
  for (const [limitBytes, slackBytes] of [[64_000, 1_000], [50 * GIB, 64 << 20]] as const) {
    const storage = new Storage(limitBytes);
    const space = await storage.member("one");
    using _taken = await space.reserve(100);
    assert.equal((await storage.metadata.stock()).reservedBytes, 100 + slackBytes);
  }
});

Deno.test("grant: a file of exactly the limit fits, and the next one in its place", async () => {
  const storage = new Storage(1_000);
  const space = await storage.member("one");
  for (let count = 0; count < 3; count++) {
    using whole = await space.reserve(1_000);
    assert.ok(whole);
    assert.equal(await space.reserve(1), undefined);
  }
});

Deno.test("grant: without a limit nothing is reserved in the ledger", async () => {
  const storage = new Storage(Infinity);
  const space = await storage.member("one");
  using _huge = await space.reserve(Number.MAX_SAFE_INTEGER);
  await space.beat();
  assert.equal(storage.reserves, 0);
  assert.equal((await storage.metadata.stock()).reservedBytes, 0);
});

Deno.test("grant: a member that was taken for dead joins again with its bytes", async () => {
  const storage = new Storage(1_000);
  const space = await storage.member("one");
  using _held = await space.reserve(300);
  await storage.metadata.leave("one");
  using more = await space.reserve(200);
  assert.ok(more);
  await storage.metadata.leave("one");
  await space.beat();
  assert.equal((await storage.metadata.stock()).reservedBytes, 500);
});

Deno.test("grant: a member that joins again waits for its heartbeat, however late", async () => {
  const storage = new Storage(1_000);
  const space = await storage.member("one");
  await storage.metadata.leave("one");
  storage.beatDelay = new Promise((resolve) => setTimeout(resolve, 0));
  using taken = await space.reserve(200);
  assert.ok(taken);
  assert.equal(storage.reserves, 2, "once before it, and once behind it");
});

Deno.test("grant: a late answer of the ledger does not grant the bytes of kept files again", async () => {
  const storage = new Storage(10_000);
  const space = await storage.member("one");
  for (let count = 0; count < 2; count++) {
    const download = await space.reserve(300);
    const answer = Promise.withResolvers<void>();
    storage.beatAnswer = answer.promise;
    let isWritten = false;
    const beating = space.beat().then(() => isWritten = true);
    await new Promise((resolve) => setTimeout(resolve, 0));
    assert.equal(isWritten, false, "it waits for the answer");
    download?.kept();
    answer.resolve();
    await beating;
    assert.equal(space.budget.grantedBytes, 0);
  }
});

Deno.test("grant: a member that cannot join again with its bytes promises no more", async () => {
  const storage = new Storage(1_000);
  const [one, other] = [await storage.member("one"), await storage.member("other")];
  using _held = await one.reserve(600);
  await storage.metadata.leave("one");
  using _taken = await other.reserve(900);
  await one.beat();
  assert.equal(await one.reserve(10), undefined);
  assert.equal((await storage.metadata.stock("other")).reservedBytes, 0);
});

Deno.test("grant: while the ledger does not answer, a download waits once, not long", async () => {
  const played = new VirtualClock();
  using _runtime = playRuntime({ clock: played });
  await played.play(silentLedger());
});

async function silentLedger(): Promise<void> {
  const storage = new Storage(1_000);
  const space = await storage.member("one");
  const answer = Promise.withResolvers<void>();
  storage.delay = answer.promise;
  assert.equal(await space.reserve(100), undefined);
  const startedAtMs = clock.nowMs();
  for (let count = 0; count < 20; count++) assert.equal(await space.reserve(100), undefined);
  assert.equal(clock.nowMs() - startedAtMs, 0, "each of twenty");
  assert.deepEqual(storage.lines, [], "who does not answer says so itself");

  answer.resolve();
  await space.beat();

  assert.equal(space.budget.ownReservedBytes, 0, "the late bytes are given back");
  using taken = await space.reserve(1_000);
  assert.ok(taken);
}

Deno.test("grant: a ledger that fails is logged once, and once when it answers again", async () => {
  const storage = new Storage(1_000);
  const space = await storage.member("one");
  storage.delay = Promise.reject(new Error("disk I/O error"));
  for (let count = 0; count < 3; count++) assert.equal(await space.reserve(100), undefined);
  storage.delay = undefined;
  using _taken = await space.reserve(100);

  assert.deepEqual(storage.lines, [
    "warn space reservation failed",
    "info space is reserved again",
  ]);
});

Deno.test("grant: a probe ends the outage of a ledger once it answers, without a request", async () => {
  const storage = new Storage(1_000);
  const space = await storage.member("one");
  storage.delay = Promise.reject(new Error("disk I/O error"));
  assert.equal(await space.reserve(100), undefined);
  await space.probe();
  assert.deepEqual(storage.lines, ["warn space reservation failed"]);
  storage.delay = new Promise((resolve) => setTimeout(resolve, 0));
  await space.probe();
  assert.deepEqual(storage.lines.slice(1), ["info space is reserved again"]);
});

Deno.test("grant: bytes that a heartbeat gives back are promised to no download meanwhile", async () => {
  const storage = new Storage(1_000);
  const [one, other] = [await storage.member("one"), await storage.member("other")];
  (await one.reserve(600))?.[Symbol.dispose]();
  const answer = Promise.withResolvers<void>();
  storage.beatAnswer = answer.promise;
  const beating = one.beat();
  using whole = await other.reserve(1_000);
  assert.ok(whole);

  const meanwhile = one.reserve(100);
  answer.resolve();
  await beating;

  assert.equal(await meanwhile, undefined);
});

Deno.test("grant: a heartbeat that fails is logged once, and once when it is written", async () => {
  const storage = new Storage(1_000);
  const space = await storage.member("one");
  storage.beatAnswer = Promise.reject(new Error("disk I/O error"));
  for (let count = 0; count < 3; count++) await space.beat();
  storage.beatAnswer = undefined;
  for (let count = 0; count < 3; count++) await space.beat();

  assert.deepEqual(storage.lines, [
    "warn heartbeat not written",
    "info heartbeats are written again",
  ]);
});

/** One storage without files, for any number of members. */
class Storage {
  readonly metadata = new MemoryMetadataStore();
  readonly lines: string[] = [];
  /** How often bytes were requested. */
  reserves = 0;
  /** Delays each answer of the ledger. */
  delay: Promise<void> | undefined;
  /** Delays each heartbeat. */
  beatDelay: Promise<void> | undefined;
  /** Delays the answer to each heartbeat that is written. */
  beatAnswer: Promise<void> | undefined;
  readonly #limitBytes: number;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  async member(owner: string): Promise<Space> {
    const write = (line: string) => {
      const { level, msg } = JSON.parse(line);
      this.lines.push(`${level} ${msg}`);
    };
    const log = createLogger("info", { write });
    const users = { reads: new ActiveReads(), flushTouches: () => Promise.resolve() };
    const space = assembleSpace({ limit: SizeLimit.of(this.#limitBytes), owner }, users, {
      metadata: this.#counted(),
      nars: { remove: () => Promise.resolve(true) },
      nowMs: () => performance.now(),
      log,
      observe: () => undefined,
    });
    await space.open();
    return space;
  }

  #counted(): MetadataStore {
    return new Proxy<MetadataStore>(this.metadata, {
      get: (target, name) => {
        const method = Reflect.get(target, name).bind(target);
        if (name === "beat") {
          return async (...order: unknown[]) => {
            await this.beatDelay;
            const granted = await method(...order);
            await this.beatAnswer;
            return granted;
          };
        }
        if (name !== "reserve") return method;
        return async (...order: unknown[]) => {
          this.reserves++;
          await this.delay;
          return await method(...order);
        };
      },
    });
  }
}
