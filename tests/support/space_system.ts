import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { NarName } from "../../src/nix/nar_name.ts";
import { narNameOf } from "../../src/nix/stored_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { EvictionWatch } from "./eviction_watch.ts";
import { LedgerWatch } from "./ledger_watch.ts";
import { type OpenModelDatabase, openSqliteModel } from "./model_database.ts";
import { turns } from "./mortal_life.ts";
import { MortalLarder, type RunningLarder } from "./mortal_larder.ts";
import { SmallDisk } from "./small_disk.ts";
import type { SmallUpstream } from "./small_upstream.ts";
import { narNamed, type SmallWorld } from "./small_world.ts";
import type { Answer, Deed, Seen } from "./space_model.ts";
import { STAYS } from "./staying_client.ts";
import { hashOfNode } from "./stored_graph.ts";

/** Between two steps: more than the cache remembers any attempt in vain. */
const STEP_MS = 10_000;
/** Longer than the silence of a living member. */
const SLEEP_MS = 40_000;
const ASKED = { requestId: "test", isHead: false };

const WATCHER = { progress: () => undefined, isWanted: () => true };

/**
 * One larder after the other on one disk, or two at a time, and the conditions that must hold at
 * every moment.
 */
export class SpaceSystem implements AsyncDisposable {
  readonly world: SmallWorld;
  readonly watch: EvictionWatch;
  readonly #ledger = new LedgerWatch(() => this.limitBytes);
  readonly disk: SmallDisk;
  limitBytes: number;
  #nowMs = 1_000_000;
  readonly #openDatabase: OpenModelDatabase;
  readonly #ended = new Set<string>();
  /** By their place; `undefined` is dead. */
  readonly #members: (RunningLarder | undefined)[];

  constructor(
    world: SmallWorld,
    limitBytes: number,
    memberCount = 1,
    openDatabase: OpenModelDatabase = openSqliteModel,
  ) {
    this.#openDatabase = openDatabase;
    this.world = world;
    this.limitBytes = limitBytes;
    this.#members = Array(memberCount).fill(undefined);
    this.watch = new EvictionWatch(world);
    this.disk = new SmallDisk((bytes) => this.#grown(bytes));
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** The first one that runs. */
  get running(): RunningLarder {
    const [first] = this.living;
    assert.ok(first, "it runs");
    return first;
  }

  get living(): readonly RunningLarder[] {
    return this.#members.filter((member) => member !== undefined);
  }

  /** Each has its own network. */
  get upstreams(): readonly SmallUpstream[] {
    return this.living.map(({ larder }) => larder.upstream);
  }

  member(place: number): RunningLarder {
    const member = this.#members[place % this.#members.length];
    assert.ok(member, "it runs");
    return member;
  }

  tick(): void {
    this.#nowMs += STEP_MS;
    this.watch.forget();
  }

  /** Starts all that do not run. */
  async start(dieAfter: readonly number[] = []): Promise<void> {
    for (const [place, member] of this.#members.entries()) {
      if (member === undefined) await this.#start(place, dieAfter);
    }
  }

  /** From now on it changes nothing more; its running work is cut off. */
  async crash(place = 0): Promise<void> {
    this.member(place).larder.life.end();
    await this.#over(place);
  }

  /**
   * A member sleeps from one of its steps on, so long that the others take it for dead. Resolves
   * when it is awake again; at once if `work` is over before it falls asleep.
   */
  async sleep(place: number, { after, work }: { after: number; work: Promise<unknown> }) {
    const sleeper = this.member(place);
    const { life } = sleeper.larder;
    life.sleepAfter(after);
    await Promise.race([life.asleep, work]);
    this.#nowMs += SLEEP_MS;
    for (const member of this.living) if (member !== sleeper) await member.runChores();
    life.wake();
  }

  /** Ends all in order. */
  async stop(): Promise<void> {
    for (const place of this.#members.keys()) await this.#over(place);
  }

  /** Resolves when no work is running, and each has seen the changes of the others. */
  async idle(): Promise<void> {
    for (const member of this.living) await member.idle();
    if (this.#members.length === 1) return;
    // Another sees the bytes that one frees or takes, and may evict for them: once more each way.
    for (let round = 0; round < 2; round++) {
      for (const member of this.living) {
        await member.runChores();
        await member.idle();
      }
    }
  }

  /** Does one deed. An error is an answer too: nobody heard. */
  async perform({ kind, path, after, member = 0 }: Deed): Promise<Answer> {
    await turns(after);
    const running = this.member(member);
    const hash = hashOfNode(path);
    try {
      switch (kind) {
        case "fetch":
        case "narinfo":
          return await this.#fetch(running, path, kind === "fetch");
        case "pin":
          return { done: await running.pins.pin(hash) };
        case "unpin":
          await running.pins.unpin(hash);
          return { done: true };
        case "delete":
          return { done: await running.remover.narinfo(hash) };
        case "delete nar":
          return { done: await running.remover.nar(this.world.narOf(path).name) };
        case "evict":
          return await this.#evict(running, path);
      }
    } catch {
      return {};
    }
  }

  /** Once no work is running. */
  async seen(): Promise<Seen> {
    const { database } = this.running.larder;
    const rows = await database.rows(`SELECT p.hash, u.used_at_ms FROM narinfo i
      JOIN path p ON p.id = i.path_id JOIN narinfo_use u ON u.path_id = i.path_id`);
    const stored = rows.map(({ hash, used_at_ms }) => (
      [this.world.numberOf(hash as StorePathHash), Number(used_at_ms)] as const
    ));
    const pinned = await database.rows("SELECT hash FROM pin_root ORDER BY id");
    const pins = pinned.map(({ hash }) => this.world.numberOf(hash as StorePathHash));
    return {
      stored: new Map(stored),
      pins,
      kept: new Set([...this.disk.nars.keys()].map(narNameOf)),
    };
  }

  /** Errors in the accounts and on the disk once no work is running. */
  async audit(): Promise<readonly string[]> {
    const stock = await this.running.metadata.stock();
    const counted = stock.keptBytes + stock.pendingBytes;
    const { bytes } = this.disk;
    const problems = [...this.watch.violations.splice(0), ...this.#ledger.violations.splice(0)];
    if (counted !== bytes) problems.push(`${bytes} bytes are there, and ${counted} are counted`);
    for (const { space: { budget: { usedBytes, reservedBytes } } } of this.living) {
      if (usedBytes !== counted) problems.push(`a budget counts ${usedBytes} bytes`);
      if (reservedBytes !== 0) problems.push(`${reservedBytes} bytes stay reserved`);
    }
    if (this.disk.growing.length > 0) problems.push(`left behind: ${this.disk.growing}`);
    const pending = new Set((await this.running.metadata.pendingFiles()).map(({ at }) => at));
    for (const [at, file] of this.disk.nars) {
      const name = narNameOf(at);
      const kept = (await this.running.metadata.findNar(name))?.kept;
      const isKept = kept?.at === at && kept.fileSize === file.length;
      if (!isKept && !pending.has(at)) problems.push(`${at} is there, and nobody knows`);
      if (!isSame(file, narNamed(name).bytes)) problems.push(`${at} holds something else`);
    }
    return problems;
  }

  /** True when all that pins reach is known, and nothing more is held for protected. */
  isSettled(): Promise<boolean> {
    return this.running.larder.database.isSettled();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const [place, member] of this.#members.entries()) {
      if (member !== undefined) await this.crash(place);
    }
    this.disk[Symbol.dispose]();
  }

  /** `dieAfter` are the steps after which a start dies, for as many starts. */
  async #start(place: number, dieAfter: readonly number[]): Promise<void> {
    for (const steps of [...dieAfter, Infinity]) {
      const underWay = () => this.#members[place]?.underWay() ?? new Set<never>();
      const member = this.#members[place] = await MortalLarder.start({
        disk: this.disk,
        world: this.world,
        limitBytes: this.limitBytes,
        nowMs: () => this.#nowMs,
        watched: (metadata, database) =>
          this.watch.watched(this.#ledger.watched(metadata, database), database),
        ordered: (metadata) => this.watch.ordered(metadata, underWay),
        openDatabase: this.#openDatabase,
        dieAfter: steps,
        ended: this.#ended,
      });
      if (member === undefined) continue;
      if (steps === Infinity) return;
      await this.crash(place);
    }
  }

  async #over(place: number): Promise<void> {
    await this.member(place).over();
    this.#members[place % this.#members.length] = undefined;
  }

  async #fetch(running: RunningLarder, path: number, withNar: boolean): Promise<Answer> {
    const { text } = await running.narinfos.serve(hashOfNode(path), ASKED);
    if (text === undefined) return { narinfo: false };
    const { name, bytes } = this.world.narOf(path);
    const url = /^URL: nar\/(.*)$/m.exec(text)?.[1];
    if (url !== name) this.watch.violations.push(`path ${path} leads to ${url}`);
    if (!withNar) return { narinfo: true };
    try {
      const answer = await running.nars.open({ name: url as NarName }, "test", STAYS);
      if (answer === undefined) return { narinfo: true, nar: false };
      await using _open = answer;
      const got = await answer.whole() ?? await new Response(await answer.read(0)).bytes();
      if (!isSame(got, bytes)) this.watch.violations.push(`path ${path} came as something else`);
      return { narinfo: true, nar: true };
    } catch {
      return { narinfo: true, nar: false };
    }
  }

  /** Down to a twelfth of the limit for each path number. */
  async #evict({ space }: RunningLarder, twelfths: number): Promise<Answer> {
    const targetBytes = Math.floor(this.limitBytes * twelfths / 12);
    const done = await space.collect({ targetBytes, dryRun: false }, WATCHER);
    return { done: done?.reached ?? false };
  }

  #grown(bytes: number): void {
    const { violations } = this.watch;
    if (bytes > this.limitBytes) violations.push(`the disk holds ${bytes} bytes`);
    // A budget sees the other member's reservations late; the ledger counts them.
    if (this.#members.length > 1) return;
    const { budget } = this.running.space;
    if (budget.freeBytes < 0) violations.push(`${-budget.freeBytes} bytes too many are promised`);
  }
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}
