import { messageOf } from "../../base/failure.ts";
import { NO_OTHER_MEMBERS, type WorkLeases } from "../../locks/work_leases.ts";
import type { NarRecord } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Loops } from "../../upstream/loops.ts";
import type { UpstreamReading } from "../../upstream/upstream.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import { type InFlight, progressOf, type TransferProgress } from "../fetch/nar_fetcher.ts";
import { announcedFileSize } from "../nar/nar_naming.ts";
import type { AttemptLogDeps } from "../sources/attempt_log.ts";
import type { NarFailure } from "../sources/nar_attempts.ts";
import {
  Download,
  type DownloadOrigin,
  ELSEWHERE,
  NotKept,
  type RunDownloadDeps,
  runLeased,
} from "./run_download.ts";
import { GrowingFile, makeGrowingFile } from "./growing_file.ts";
import { KeepOutageLog, type KeepTrials } from "./keep_outage_log.ts";
import { type ReceivedFile, ReceivedFiles, runReceived } from "./received_files.ts";

interface DownloadsDeps {
  readonly attempts: RunDownloadDeps["attempts"];
  readonly transfer: RunDownloadDeps["transfer"];
  readonly space: RunDownloadDeps["space"];
  /** Knows the upstreams that have capacity to spare. */
  readonly pool: Pick<UpstreamPool, "isSpare">;
  readonly files: FileParts;
  /** Counts each NAR that is downloaded. */
  readonly reads: Pick<ActiveReads, "begin">;
  /** Default: there are no other members. */
  readonly leases?: Pick<WorkLeases, "nar">;
  /** Default: no request is one of another larder. */
  readonly loops?: Pick<Loops, "isPassedOn">;
  /** Trials of what kept files from being stored. Default: the next files are. */
  readonly trials?: KeepTrials;
}

interface FileParts {
  /** Called before a file that another process left is stored. Default: it has one name. */
  readonly claim?: (path: string) => void;
  /** The folder of growing files, on the storage's file system so that they can be moved there. */
  readonly spoolFolder: string;
  /** Threads that verify whole files of other processes; default 1. */
  readonly verifyThreads?: number;
}

/** Files that are here, and neither kept nor lost. */
export interface VerificationBacklog {
  readonly files: number;
  readonly bytes: number;
  /** How long the oldest one waits; 0 for none. */
  readonly oldestMs: number;
}

/** A download for a client. */
export interface JoinedDownload {
  readonly download: Download;
  /** False for a new one. */
  readonly joined: boolean;
  /** True for the first client that joins a prefetch. */
  readonly isFirstOfPrefetch: boolean;
}

/** The downloads in flight: one for each NAR file, however many clients request it. */
export class Downloads implements InFlight {
  /** Logs files that this machine cannot keep, those of uploads too. */
  readonly outages: KeepOutageLog;
  readonly #deps: DownloadsDeps;
  /** The parts of each download's run. */
  readonly #run: RunDownloadDeps;
  #isStopping = false;
  readonly #inFlight = new Map<NarName, Download>();
  readonly #running = new Map<Download, Promise<void>>();
  readonly #received: ReceivedFiles;

  constructor(deps: DownloadsDeps) {
    const { attempts, transfer, space } = deps;
    const { candidates: { metadata }, logging: { log, metrics } } = attempts;
    const outages = this.outages = new KeepOutageLog(log, metrics);
    const isStopping = () => this.#isStopping;
    this.#deps = deps;
    this.#run = { attempts, transfer, space, outages, isStopping };
    this.#received = new ReceivedFiles({
      ...{ metadata, log, isStopping },
      atOnceMax: deps.files.verifyThreads ?? 1,
      isInFlight: (narName) => this.#inFlight.has(narName),
      verify: async (file) => {
        const download = this.#startReceived(file);
        await (download && this.#running.get(download));
      },
    });
  }

  /** How many downloads are in flight. */
  get count(): number {
    return this.#inFlight.size;
  }

  /** The download in flight. Begins to verify a file that another process left. */
  find(narName: NarName): Download | undefined {
    const inFlight = this.#inFlight.get(narName);
    if (inFlight !== undefined) return inFlight;
    const file = this.#received.take(narName);
    return file && this.#startReceived(file);
  }

  /** True if a download of the file is in flight, or another process left it. */
  has(narName: NarName): boolean {
    return this.#inFlight.has(narName) || this.#received.has(narName);
  }

  /** The whole files that wait for the check of their NAR. */
  backlog(): VerificationBacklog {
    const backlog = { files: 0, bytes: 0, oldestMs: 0 };
    const add = (fileSize: number, waitedMs: number) => {
      backlog.files++;
      backlog.bytes += fileSize;
      backlog.oldestMs = Math.max(backlog.oldestMs, waitedMs);
    };
    for (const { origin, unverifiedMs, fileSize = 0 } of this.#inFlight.values()) {
      if (unverifiedMs !== undefined && origin !== "received") add(fileSize, unverifiedMs);
    }
    const nowMs = this.#deps.transfer.keeping.nowMs();
    for (const { fileSize, receivedAtMs } of this.#received.list()) {
      add(fileSize, nowMs - receivedAtMs);
    }
    return backlog;
  }

  /** The progress of the download of a file; `undefined` where none is in flight. */
  progressOf(narName: NarName): TransferProgress | undefined {
    const download = this.#inFlight.get(narName);
    return download && progressOf(download);
  }

  /** The progress of at most `countMax` downloads, the oldest first. */
  progress(countMax: number): readonly TransferProgress[] {
    const shown: TransferProgress[] = [];
    for (const download of this.#inFlight.values()) {
      if (shown.length >= countMax) break;
      const progress = progressOf(download);
      if (progress !== undefined) shown.push(progress);
    }
    return shown;
  }

  /**
   * The download of `nar` in flight, or a new one. It goes on even if every reader leaves: the
   * client will probably retry. Throws NotKept when the file cannot be made.
   */
  join(nar: NarRecord, requestId: string): JoinedDownload {
    const inFlight = this.find(nar.name);
    if (inFlight === undefined || this.hasFailedForOthers(inFlight)) {
      const file = this.#makeGrowingFile(nar, requestId);
      const run = (download: Download) => this.#runLeased(this.#run, { download, nar, requestId });
      const download = this.#start(nar, { file, origin: "client", run });
      return { download, joined: false, isFirstOfPrefetch: false };
    }
    const isFirstOfPrefetch = inFlight.origin === "prefetch" && !inFlight.isWanted;
    inFlight.want();
    return { download: inFlight, joined: true, isFirstOfPrefetch };
  }

  /**
   * False while a download waits for its first byte, and another larder sent this request: the
   * download may wait for that one.
   */
  mayJoin(narName: NarName): boolean {
    return !this.#isPassedOn || this.#inFlight.get(narName)?.state.state !== "opening";
  }

  /**
   * True for a failed download that says nothing about this request. A client waits longer than a
   * prefetch, and may use more room. And it may have sources that another larder's request has not.
   */
  hasFailedForOthers({ isBackground, isPassedOn, state }: Download): boolean {
    return state.state === "failed" && (isBackground || (isPassedOn && !this.#isPassedOn));
  }

  /**
   * A prefetch; not while a download of the same file is in flight. `isJoined`: a client joined
   * it. Never rejects.
   */
  async prefetch(
    nar: NarRecord,
    requestId: string,
  ): Promise<{ isKept: boolean; isJoined: boolean }> {
    let file: GrowingFile;
    try {
      file = makeGrowingFile(this.#deps.files.spoolFolder, nar.name);
    } catch (error) {
      const facts = { nar: nar.name, error: messageOf(error), request_id: requestId };
      this.#deps.attempts.logging.log.event("download-failed", facts, "debug");
      return { isKept: false, isJoined: false };
    }
    const run = (download: Download) => {
      const { pool } = this.#deps;
      const deps = prefetchDeps(this.#run, { pool, isWanted: () => download.isWanted });
      return this.#runLeased(deps, { download, nar, requestId });
    };
    const download = this.#start(nar, { file, origin: "prefetch", run });
    await this.#running.get(download);
    return { isKept: isKeptSomewhere(download), isJoined: download.isWanted };
  }

  /**
   * Whole files that another process left: from now on larder requests none of them. Never
   * rejects.
   */
  receive(paths: readonly string[]): Promise<void> {
    return this.#received.add(paths);
  }

  /** Verifies these files and those received before, and keeps them. Never rejects. */
  async resume(paths: readonly string[]): Promise<void> {
    await this.receive(paths);
    await this.#received.verify();
  }

  /** Tries again what kept files from being stored. Never rejects. */
  async probe(): Promise<void> {
    const { trials } = this.#deps;
    if (trials !== undefined) await this.outages.probe(trials);
  }

  /** Begins the stop: a whole file without time for its check stays for the next process. */
  stopping(): void {
    this.#isStopping = true;
  }

  /** Resolves when no download is in flight. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running.values());
  }

  /** Resolves when no download is in flight that a client waits for. */
  async wantedIdle(): Promise<void> {
    for (;;) {
      const wanted = [...this.#running].filter(([{ isWanted }]) => isWanted);
      if (wanted.length === 0) return;
      await Promise.allSettled(wanted.map(([, running]) => running));
    }
  }

  get #isPassedOn(): boolean {
    return this.#deps.loops?.isPassedOn ?? false;
  }

  /** `undefined` for a file that cannot be opened. */
  #startReceived(received: ReceivedFile): Download | undefined {
    const { nar, path } = received;
    try {
      const file = new GrowingFile(path);
      const hold = {
        claim: () => this.#deps.files.claim?.(path),
        putBack: () => this.#received.putBack(received),
      };
      const run = (download: Download) =>
        runReceived(this.#run, { download, nar, hold })
          .finally(() => this.#received.over(received));
      return this.#start(nar, { file, origin: "received", run });
    } catch (error) {
      this.#received.over(received);
      const facts = { path, error: messageOf(error) };
      this.#deps.attempts.logging.log.event("received-nar-not-resumed", facts);
      return undefined;
    }
  }

  #start(nar: NarRecord, { file, origin, run }: DownloadStart): Download {
    const { reads, transfer: { keeping, tracer } } = this.#deps;
    const { name } = nar;
    const use = file.use();
    const end = reads.begin(name);
    const facts = { startedAtMs: keeping.nowMs(), origin, isPassedOn: this.#isPassedOn };
    const download = new Download({ name, file, ...facts });
    this.#inFlight.set(name, download);
    const start = { name: "download nar", facts: { "larder.nar": name } };
    const running = tracer.span(start, async (span) => {
      const failure = await run(download);
      if (failure !== undefined) span.fail(failure.reason);
    }).finally(() => {
      if (this.#inFlight.get(name) === download) this.#inFlight.delete(name);
      this.#running.delete(download);
      use[Symbol.dispose]();
      end();
    });
    this.#running.set(download, running);
    return download;
  }

  #runLeased(run: RunDownloadDeps, { download, nar, requestId }: RunParts) {
    const { leases = NO_OTHER_MEMBERS } = this.#deps;
    return runLeased({ run, leases }, download, nar, requestId);
  }

  #makeGrowingFile(nar: NarRecord, request_id: string): GrowingFile {
    try {
      return makeGrowingFile(this.#deps.files.spoolFolder, nar.name);
    } catch (error) {
      const detail = `Cannot begin download: ${messageOf(error)}`;
      const facts = { nar: nar.name, detail, request_id };
      this.#run.outages.failed(announcedFileSize(nar) ?? 0, "disk", facts);
      throw new NotKept("unavailable", detail, { nar: nar.name }, error);
    }
  }
}

interface RunParts {
  readonly download: Download;
  readonly nar: NarRecord;
  readonly requestId: string;
}

interface DownloadStart {
  readonly file: GrowingFile;
  readonly origin: DownloadOrigin;
  /** Never rejects. */
  readonly run: (download: Download) => Promise<NarFailure | undefined>;
}

function isKeptSomewhere({ state }: Download): boolean {
  return state.state === "kept" || (state.state === "failed" && state.reason === ELSEWHERE);
}

interface PrefetchDownloadParts {
  readonly pool: Pick<UpstreamPool, "isSpare">;
  /** False until a client joins. */
  readonly isWanted: () => boolean;
}

/**
 * The same for a prefetch. It uses upstreams with capacity to spare alone, and evicts no entry that
 * was used within the hour. Its failures touch neither the log nor an upstream's health. All of
 * that ends when a client joins.
 */
function prefetchDeps(
  deps: RunDownloadDeps,
  { pool, isWanted }: PrefetchDownloadParts,
): RunDownloadDeps {
  const { attempts: { candidates, logging }, space } = deps;
  return {
    ...deps,
    attempts: {
      ...deps.attempts,
      candidates: { ...candidates, pool: sparePool(candidates.pool, pool, isWanted) },
      logging: { ...logging, ...quietLogging(logging, isWanted) },
    },
    space: {
      budget: space.budget,
      get ledgerFailure() {
        return space.ledgerFailure;
      },
      mayFit: (bytes) => space.mayFit(bytes),
      reserve: (bytes) => isWanted() ? space.reserve(bytes) : space.reserveSpare(bytes),
      grow: (reservation, bytes) =>
        isWanted() ? space.grow(reservation, bytes) : space.growSpare(reservation, bytes),
      reserveSpare: (bytes) => space.reserveSpare(bytes),
      growSpare: (reservation, bytes) => space.growSpare(reservation, bytes),
      kept: (reservation) => space.kept(reservation),
      diskFull: () => {
        if (isWanted()) space.diskFull();
      },
    },
    outages: quietOutages(deps.outages, isWanted),
  };
}

type CandidatesPool = RunDownloadDeps["attempts"]["candidates"]["pool"];

function sparePool(
  pool: CandidatesPool,
  spare: Pick<UpstreamPool, "isSpare">,
  isWanted: () => boolean,
): CandidatesPool {
  return {
    order: (kind) => pool.order(kind),
    waitOf: (url) => isWanted() || spare.isSpare(url) ? pool.waitOf(url) : "none",
    narinfo: (storePathHash, options) =>
      isWanted() ? pool.narinfo(storePathHash, options) : Promise.resolve({ kind: "unknown" }),
    probeIfDown: async (urls, kind) => {
      if (isWanted()) await pool.probeIfDown(urls, kind);
    },
  };
}

function quietLogging({ pool, log }: AttemptLogDeps, isWanted: () => boolean) {
  return {
    log: quietLog(log, isWanted),
    pool: {
      noteNar: (url: string, reading: UpstreamReading) => {
        if (isWanted() || reading.kind !== "failed") pool.noteNar(url, reading);
      },
      noteNarTime: (url: string, tookMs: number) => pool.noteNarTime(url, tookMs),
      busy: (url: string) => pool.busy(url),
      has: (url: string) => pool.has(url),
    },
  };
}

function quietOutages(
  outages: RunDownloadDeps["outages"],
  isWanted: () => boolean,
): RunDownloadDeps["outages"] {
  return {
    failed: (...failure) => {
      if (isWanted()) outages.failed(...failure);
    },
    noRoom: (fileSize, facts) => {
      if (isWanted()) outages.noRoom(fileSize, facts);
    },
    kept: (fileSize) => outages.kept(fileSize),
  };
}

/** Logs failures at `debug` until `isWanted`. */
function quietLog(log: Logger, isWanted: () => boolean): Logger {
  return {
    ...log,
    event: (kind, facts, level) => log.event(kind, facts, isWanted() ? level : "debug"),
  };
}
