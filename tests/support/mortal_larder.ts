import { SizeLimit } from "../../src/space/size_limit.ts";
import { Demotions } from "../../src/cache/sources/nar_candidates.ts";
import { Downloads } from "../../src/cache/download/downloads.ts";
import { PassThroughTransfers } from "../../src/cache/pass_through/pass_through_transfers.ts";
import { SinkFetcher } from "../../src/cache/fetch/sink_fetcher.ts";
import { NarForms } from "../../src/cache/forms/nar_forms.ts";
import { KeptNars } from "../../src/cache/kept/kept_nars.ts";
import {
  createSigner,
  NarinfoServer,
  NegativeCache,
} from "../../src/cache/narinfo/serve_narinfo.ts";
import { NO_PREFETCH } from "../../src/cache/prefetch/prefetch_ports.ts";
import { Remover } from "../../src/cache/remove.ts";
import { NarServer } from "../../src/cache/serve_nar.ts";
import { NarinfoFetches } from "../../src/cache/narinfo/narinfo_fetches.ts";
import { Touches } from "../../src/cache/touches.ts";
import { type MemberId, newMemberId } from "../../src/base/member_id.ts";
import { ActiveReads } from "../../src/space/active_reads.ts";
import { recover } from "../../src/space/recover.ts";
import { assembleSpace } from "../../src/space/assemble_space.ts";
import type { Space } from "../../src/space/space.ts";
import { HotMetadataStore } from "../../src/metadata/hot_metadata_store.ts";
import type { MetadataStore } from "../../src/metadata/metadata_store.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import { Pins } from "../../src/pins/pins.ts";
import { HotNarStore } from "../../src/storage/hot_nar_store.ts";
import { LocalSpool } from "../../src/storage/local/local_spool.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { NO_TRACER as tracer } from "../../src/telemetry/tracer.ts";
import type { ModelConnection, OpenModelDatabase } from "./model_database.ts";
import { MortalLife } from "./mortal_life.ts";
import type { SmallDisk } from "./small_disk.ts";
import { SmallUpstream } from "./small_upstream.ts";
import { SmallVerifier } from "./small_verifier.ts";
import type { SmallWorld } from "./small_world.ts";

export interface MortalLarderParts {
  readonly disk: SmallDisk;
  readonly world: SmallWorld;
  readonly limitBytes: number;
  readonly nowMs: () => number;
  /** Stands between the database and everything else: a watch sees each change. */
  readonly watched: (metadata: MetadataStore, database: ModelConnection) => MetadataStore;
  /** Stands in front of its end of the database: a watch sees each call as it leaves. */
  readonly ordered: (metadata: MetadataStore) => MetadataStore;
  readonly openDatabase: OpenModelDatabase;
  /** It dies at this step of its start. */
  readonly dieAfter: number;
  /** The members whose processes are known to have ended. */
  readonly ended: Set<MemberId>;
}

/** Longer than anybody waits for space. */
const DEAD_STEP_MS = 60_000;

/** The silence after which a member whose process has ended is dead. */
const ENDED_AFTER_MS = 10_000;

/** Small enough that some files are in memory and some are not. */
const HOT_NARS = { fileBytesMax: 30_000, totalBytesMax: 50_000 };

/** Nobody is demoted or counts here; to make these takes longer than a download. */
const [demotions, metrics] = [new Demotions(), new Metrics()];

const log = createLogger("error", { write: () => undefined });
const verifier = new SmallVerifier();

const NO_UNNAMED_NARS = {
  open: async () => undefined,
  stat: async () => undefined,
  isKnownAbsent: () => false,
};

/**
 * The cache as `serve` wires it, on a disk that outlives it, with a network of the test's own.
 * Once its life is over nothing of it changes the disk any more.
 */
export class MortalLarder {
  readonly life: MortalLife;
  readonly upstream: SmallUpstream;
  readonly database: ModelConnection;
  /** All larders are one process. */
  readonly member = newMemberId("test", Deno.pid);
  #spool: LocalSpool | undefined;
  readonly #parts: MortalLarderParts;

  private constructor(parts: MortalLarderParts, database: ModelConnection) {
    const { disk, world } = parts;
    this.#parts = parts;
    this.database = database;
    this.life = new MortalLife(() => this.#die());
    this.life.endAfter(parts.dieAfter);
    this.upstream = new SmallUpstream(world, disk, this.life);
  }

  get spool(): LocalSpool {
    if (this.#spool === undefined) throw new Error("It has not joined");
    return this.#spool;
  }

  /** `undefined` when it died before it could serve. */
  static async start(parts: MortalLarderParts): Promise<RunningLarder | undefined> {
    const database = await parts.openDatabase(parts.disk.path, parts.nowMs);
    const larder = new MortalLarder(parts, database);
    try {
      return await larder.#run();
    } catch (error) {
      if (!larder.life.isOver) throw error;
      await larder.close();
      return undefined;
    }
  }

  async #run(): Promise<RunningLarder> {
    const { disk, watched, ordered } = this.#parts;
    const { store } = this.database;
    const guarded = this.database.guarded(watched(store, this.database));
    const metadata = new HotMetadataStore(ordered(this.life.bind(guarded)), log);
    const nars = new HotNarStore(this.life.bind(disk.store(this.life)), HOT_NARS);
    await metadata.beat(this.member, { reservedBytes: 0, limitBytes: Infinity });
    this.life.check();
    this.#spool = new LocalSpool(disk.temp, { member: this.member, log });
    await this.recover({ metadata, nars });
    this.life.check();
    // As in containers of one host name, where each seems to have ended.
    this.#spool.share(this.#spool.others());
    const running = new RunningLarder(this, this.#parts, { metadata, nars });
    try {
      await running.space.open();
      await running.space.refresh();
      this.life.check();
      await running.receive();
      running.resume();
      return running;
    } catch (error) {
      await running.over();
      throw error;
    }
  }

  /** Settles the unfinished work of the dead. */
  async recover(stores: LarderStores): Promise<void> {
    const { member, spool } = this;
    const hasEnded = (id: MemberId) => this.#parts.ended.has(id);
    await recover({ ...stores, spool, member, hasEnded, log });
  }

  /** Ends it in order, the late writes first. */
  async close(): Promise<void> {
    if (this.life.isOver) return;
    this.spool[Symbol.dispose]();
    await this.database.store.leave(this.member);
    await this.database.close();
  }

  /** Its unfinished work stays as it is: calls that still run do not find its files. */
  #die(): void {
    // Nobody starts before its heartbeat is old enough.
    this.database.die(this.member, ENDED_AFTER_MS);
    this.#parts.ended.add(this.member);
    if (this.#spool === undefined) return;
    const { path } = this.#spool;
    Deno.renameSync(path, path.replace(/.{8}$/, nextDeadName()));
  }
}

export interface LarderStores {
  readonly metadata: HotMetadataStore;
  readonly nars: HotNarStore;
}

/** The upstream is never silent, and never late. */
const NAR_TIMEOUTS = { idleTimeoutMs: 0, hedgeAfterMs: 60_000, prefetchWaitMs: 60_000 };

/** The part that answers, as `buildApp` wires it. */
export class RunningLarder {
  readonly larder: MortalLarder;
  readonly #stores: LarderStores;
  readonly narinfos: NarinfoServer;
  readonly nars: NarServer;
  readonly space: Space;
  readonly pins: Pins;
  readonly remover: Remover;
  readonly touches: Touches;
  readonly #traffic: { readonly downloads: Downloads; readonly reads: ActiveReads };
  #background: Promise<void> = Promise.resolve();

  constructor(
    larder: MortalLarder,
    { limitBytes, nowMs }: MortalLarderParts,
    { metadata, nars }: LarderStores,
  ) {
    const { upstream, life, member: owner, spool: { path: spoolFolder } } = larder;
    const { pool, narClients } = upstream;
    const candidates = { metadata, pool, demotions };
    const reads = new ActiveReads();
    const changed = () => this.#later(this.space.altered());
    this.larder = larder;
    this.#stores = { metadata, nars };
    const touches = this.touches = new Touches({ metadata, nowMs, log });
    let looks = 0;
    const users = { reads, flushTouches: () => touches.flush() };
    this.space = assembleSpace({ limit: SizeLimit.of(limitBytes), owner }, users, {
      metadata,
      nars,
      // Nothing waits for the dead: each look at the clock is past every limit before it.
      nowMs: () => life.isOver ? nowMs() + ++looks * DEAD_STEP_MS : nowMs(),
      log,
      observe: () => undefined,
    });
    const attempts = { candidates, logging: { pool, demotions, log, metrics }, ...NAR_TIMEOUTS };
    const keeping = { metadata, nars, nowMs, owner };
    const downloads = new Downloads({
      attempts,
      transfer: { keeping, fetcher: upstream, verifier, tracer },
      space: this.space,
      ...{ reads, pool, files: { spoolFolder } },
    });
    this.#traffic = { downloads, reads };
    const { sweeper } = this.space;
    this.remover = new Remover({ metadata, sweeper, reads, changed });
    this.pins = new Pins({ metadata, nowMs, changed, keepsComplete() {} });
    const signer = createSigner(undefined);
    const kept = new KeptNars({ metadata, nars, sweeper, downloads, changed, nowMs, log });
    const negative = new NegativeCache(0);
    const told = { metadata, memory: { negative, demotions }, signer, log };
    this.narinfos = new NarinfoServer({
      ...{ kept, negative, demotions, nowMs, log, loops: { isPassedOn: false } },
      rows: { metadata, signer },
      isUpstream: () => true,
      narinfoFetches: new NarinfoFetches({
        ...told,
        loops: { isPassedOn: false },
        pool,
        nowMs,
        signedPathsMax: () => Infinity,
      }),
      touches,
      prefetch: NO_PREFETCH,
    });
    const sinks = new SinkFetcher({ narClients, idleTimeoutMs: 5_000 });
    const transfers = new PassThroughTransfers(nowMs);
    const passThrough = { attempts, sinks, transfers, verifier, tracer };
    const sizes = { candidates, narClients, hedgeAfterMs: 60_000 };
    const unnamedNars = NO_UNNAMED_NARS;
    const forms = new NarForms({ verifier, metadata, nowMs, log });
    this.nars = new NarServer({
      ...{ kept, forms, downloads, passThrough, unnamedNars, sizes, formerNames: metadata },
      narinfoOf: (storePathHash) => metadata.findNarinfo(storePathHash),
      isUpstream: () => true,
      watchers: { touches, reads, prefetch: NO_PREFETCH },
    });
  }

  get metadata(): HotMetadataStore {
    return this.#stores.metadata;
  }

  /** Names of the NARs that are being read or downloaded. */
  underWay(): ReadonlySet<NarName> {
    return this.#traffic.reads.names();
  }

  /** Takes over the changes of others on the storage, as the chores do. */
  async runChores(): Promise<void> {
    await this.space.beat();
    this.larder.spool.restore();
    await this.larder.recover(this.#stores);
    this.metadata.forgetChanged("all");
    await this.space.refresh();
    this.resume();
  }

  /** Work in the background, for which `idle` waits. */
  #later(work: Promise<void>): void {
    this.#background = Promise.all([this.#background, work]).then(() => undefined);
  }

  /** Asks no upstream for whole files that others left, as a start does. */
  receive(): Promise<void> {
    return this.#traffic.downloads.receive(this.larder.spool.takeReceived());
  }

  /** Verifies the whole files that the dead left, as the chores do. */
  resume(): void {
    const paths = this.larder.spool.takeReceived();
    this.#later(this.#traffic.downloads.resume(paths));
  }

  /** Resolves when no work is running, in the background neither. */
  async idle(): Promise<void> {
    const { downloads } = this.#traffic;
    await downloads.idle();
    await this.#background;
    // A received file without room has further tries, as the chores give them.
    for (let tries = 0; tries < TRIES_MAX && downloads.backlog().files > 0; tries++) {
      await this.space.refresh();
      await downloads.resume([]);
    }
    // Runs come one after the other: when this one is over, those before it are.
    const order = { targetBytes: Number.MAX_SAFE_INTEGER, dryRun: false };
    try {
      await this.space.collect(order, { progress: () => undefined, isWanted: () => true });
    } catch (error) {
      // It may die within this run.
      if (!this.larder.life.isOver) throw error;
    }
    await this.touches.flush();
  }

  /** Ends it, in order if it still lives. */
  async over(): Promise<void> {
    await this.touches[Symbol.asyncDispose]();
    await this.#traffic.downloads.idle();
    await this.space[Symbol.asyncDispose]();
    await this.larder.close();
  }
}

/** More than a received file gets. */
const TRIES_MAX = 10;

let deadCount = 0;

/** As a spool folder's name ends. */
function nextDeadName(): string {
  return (++deadCount).toString(16).padStart(8, "0");
}
