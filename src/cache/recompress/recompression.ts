import { EitherSignal } from "../../base/either_signal.ts";
import { lruOf } from "../../base/lru.ts";
import { messageOf } from "../../base/failure.ts";
import { removeIfPresent } from "../../base/files.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import type { WorkLeases } from "../../locks/work_leases.ts";
import {
  Irreplaceable,
  type KeptFile,
  type NarFinder,
  type NarRecord,
  type UseCursor,
  type UsedNar,
  type UsedNarLister,
} from "../../metadata/metadata_store.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import { type NarName, renamedNar } from "../../nix/nar_name.ts";
import type { StoredName } from "../../nix/stored_name.ts";
import { clock, dice } from "../../runtime/current.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import type { Space } from "../../space/space.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Downloads } from "../download/downloads.ts";
import { mayRecompress, RECOMPRESSED } from "../forms/recompressed.ts";
import type { KeptNars } from "../kept/kept_nars.ts";
import { publishNar, type PublishNarDeps } from "../nar/publish_nar.ts";
import { checkNar, checkNarFacts, Mismatch } from "../verify/check_nar.ts";
import type { DecodedNars } from "../verify/decoded_nars.ts";
import type { NarVerifier } from "../verify/nar_verifier.ts";
import type { Encoded, NarEncoder } from "./nar_encoder.ts";

/** How long a client that got only a part of a file may come back for the rest. */
const QUIET_MS = 60 * 60 * 1_000;

/** Between two looks for files, and at whether larder is idle. */
const LOOK_EVERY_MS = 60_000;
const IDLE_EVERY_MS = 1_000;

/** Then the newest uses come first again. */
const ROUND_MS = 10 * 60 * 1_000;

/** Rows of one look: a read of the database that stops this thread for a millisecond or two. */
const ROWS_AT_ONCE = 500;

/** Of the file, for the encoder's thread: what waits there is memory. */
const PIECE_BYTES = 32 * 1024;

/** A file that could not be replaced is tried again after this time, or a restart. */
const FAILED_MS = 60 * 60 * 1_000;
const FAILED_MAX = 10_000;

/** From the start to the first count, which the start need not wait for. */
const FIRST_COUNT_MS = 3_000;

/** Between two counts of all files. Its own work changes the figures at once. */
const COUNT_EVERY_MS = 10 * 60 * 1_000;

/** In the log, where it finds a file damaged. */
const REQUEST_ID = "recompress";

export interface RecompressionDeps {
  readonly publishing:
    & PublishNarDeps
    & { readonly metadata: Pick<NarFinder, "findNar"> & UsedNarLister };
  readonly kept: Pick<KeptNars, "find">;
  readonly encoder: NarEncoder;
  readonly verifier: Pick<NarVerifier, "start">;
  /** NARs of files that were checked just now. */
  readonly decoded: Pick<DecodedNars, "names" | "take"> | undefined;
  readonly space: Pick<Space, "budget" | "lend" | "kept">;
  readonly reads: Pick<ActiveReads, "begin" | "has">;
  readonly downloads: Pick<Downloads, "has">;
  readonly leases: Pick<WorkLeases, "recompression">;
  /** True where a reader may lose the file that it reads: larder then spares used files. */
  readonly sparesUsed: boolean;
  /** False while a client waits for something. */
  readonly isIdle: () => boolean;
  /** This member's folder in the spool. */
  readonly folder: string;
  readonly level: number;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** The kept files that clients have used. A file that several store paths share counts for each. */
export interface RecompressionCounts {
  /** Those that are still to be written again. */
  readonly backlogFiles: number;
  /** The bytes of those that were. */
  readonly zstdBytes: number;
}

/** "later": somebody needs the file as it is, or a client needs the room. */
type Outcome = "replaced" | "later" | "no room" | "failed" | "not ours";

/**
 * Writes kept NAR files again in zstd, in the background, one at a time: those of the newest uses
 * first. The row of each says in which form it is kept, so nothing else need be remembered.
 */
export class Recompression implements AsyncDisposable {
  readonly #deps: RecompressionDeps;
  readonly #failed = lruOf<StoredName, number>({ countMax: FAILED_MAX });
  readonly #stopping = new AbortController();
  #counts: RecompressionCounts = { backlogFiles: 0, zstdBytes: 0 };
  #countedAtMs = -Infinity;
  readonly #timer;
  readonly #firstTimer;
  #firstCount: Promise<void> | undefined;
  #running: Promise<void> | undefined;
  /** For the log, at the end of a run. */
  #replaced = { files: 0, formerBytes: 0, zstdBytes: 0 };
  #waitingFiles = 0;

  constructor(deps: RecompressionDeps) {
    this.#deps = deps;
    this.#timer = clock.every(LOOK_EVERY_MS, () => void this.run(), false);
    const begin = () => void (this.#firstCount = this.#countFirst());
    this.#firstTimer = clock.after(FIRST_COUNT_MS, begin, false);
  }

  /** As of the last count, and of what it has done since. */
  get counts(): RecompressionCounts {
    return this.#counts;
  }

  /** Replaces what it can. Call it one at a time: a second call joins. Never rejects. */
  run(): Promise<void> {
    return this.#running ??= this.#rounds()
      .catch((error) => {
        if (this.#stopping.signal.aborted) return;
        this.#deps.log.event("recompression-paused", { error: messageOf(error) });
      })
      .finally(() => this.#running = undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer.cancel();
    this.#firstTimer.cancel();
    this.#stopping.abort(new Error("larder stops"));
    await Promise.all([this.#running, this.#firstCount]);
  }

  async #rounds(): Promise<void> {
    const { decoded } = this.#deps;
    const names = decoded?.names() ?? [];
    try {
      do {
        if (clock.nowMs() >= this.#countedAtMs + COUNT_EVERY_MS) await this.#count();
      } while (!this.#stopping.signal.aborted && await this.#round());
    } finally {
      // The memory is for those that come now.
      for (const name of names) decoded?.take(name)?.[Symbol.dispose]();
    }
    this.#tell();
  }

  #tell(): void {
    const { files, formerBytes: former_bytes, zstdBytes: zstd_bytes } = this.#replaced;
    if (files === 0) return;
    this.#replaced = { files: 0, formerBytes: 0, zstdBytes: 0 };
    this.#deps.log.info("nars recompressed", { files, former_bytes, zstd_bytes });
  }

  async #count(): Promise<void> {
    this.#counts = await this.#counted();
    this.#countedAtMs = clock.nowMs();
  }

  /** The figures of the page, before the first run: that counts again, and tells what fails. */
  async #countFirst(): Promise<void> {
    try {
      const counts = await this.#counted();
      if (this.#countedAtMs === -Infinity) this.#counts = counts;
    } catch {
      // The run meets it, too.
    }
  }

  async #counted(): Promise<RecompressionCounts> {
    let [backlogFiles, zstdBytes] = [0, 0];
    for await (const { narName, form, fileSize } of this.#used()) {
      if (form !== undefined) zstdBytes += fileSize;
      else if (mayRecompress(narName)) backlogFiles++;
    }
    return { backlogFiles, zstdBytes };
  }

  /** The kept files, those of the newest uses first. */
  async *#used(): AsyncGenerator<UsedNar> {
    const { metadata } = this.#deps.publishing;
    let after: UseCursor | undefined;
    for (;;) {
      const used = await metadata.usedNars(ROWS_AT_ONCE, after);
      for (const one of used) {
        this.#stopping.signal.throwIfAborted();
        yield one;
      }
      after = used.at(-1)?.cursor;
      if (used.length < ROWS_AT_ONCE) return;
      await clock.turn();
    }
  }

  /** True where newer uses may have come meanwhile. */
  async #round(): Promise<boolean> {
    const { nowMs } = this.#deps.publishing;
    const untilMs = nowMs() + ROUND_MS;
    let waitingFiles = 0;
    for await (const { narName, form, usedAtMs, fileSize } of this.#used()) {
      if (form !== undefined || !mayRecompress(narName)) continue;
      if (fileSize > this.#deps.space.budget.freeBytes) {
        waitingFiles++;
        continue;
      }
      if (this.#deps.sparesUsed && usedAtMs > nowMs() - QUIET_MS) continue;
      const outcome = await this.#replace(narName);
      if (outcome === "not ours") return false;
      if (outcome === "no room") waitingFiles++;
      if (outcome === "replaced" && nowMs() > untilMs) return true;
    }
    if (waitingFiles > 0 && this.#waitingFiles === 0) {
      const { freeBytes: free_bytes } = this.#deps.space.budget;
      this.#deps.log.info("recompression waits for room", { files: waitingFiles, free_bytes });
    }
    this.#waitingFiles = waitingFiles;
    return false;
  }

  async #replace(narName: NarName): Promise<Outcome | undefined> {
    const { publishing: { nowMs }, leases, metrics, log } = this.#deps;
    const before = await this.#asItCame(narName);
    if (before === undefined) return undefined;
    if (!await this.#isFree(before)) return "later";
    await this.#idle();
    await using lease = await leases.recompression();
    if (lease.kind !== "ours") return "not ours";
    // The member that had the lease may have replaced it meanwhile.
    const nar = await this.#asItCame(narName);
    if (nar === undefined) return undefined;
    const { kept } = nar;
    let outcome: Exclude<Outcome, "not ours">;
    try {
      outcome = await this.#encode(nar, kept);
    } catch (error) {
      this.#stopping.signal.throwIfAborted();
      outcome = error instanceof Irreplaceable ? "later" : "failed";
      if (outcome === "failed") {
        log.event("nar-not-recompressed", { nar: narName, error: messageOf(error) });
      }
    }
    if (outcome === "failed") this.#failed.set(kept.at, nowMs() + FAILED_MS);
    const result = outcome === "no room" ? "later" : outcome;
    metrics.series("recompressed_nars_total", { result }).count();
    return outcome;
  }

  /** The row of a file to replace; `undefined` where there is none, or none now. */
  async #asItCame(narName: NarName): Promise<NarRecord & { readonly kept: KeptFile } | undefined> {
    const { metadata, nowMs } = this.#deps.publishing;
    const nar = await metadata.findNar(narName, { fresh: true });
    if (nar?.kept === undefined || nar.kept.form !== undefined) return undefined;
    return nowMs() < (this.#failed.get(nar.kept.at) ?? 0) ? undefined : { ...nar, kept: nar.kept };
  }

  /** False where a client may need the file in its form, or its new name stands for another one. */
  async #isFree({ name, brokenAtMs = 0 }: NarRecord): Promise<boolean> {
    const { publishing: { metadata, nowMs }, reads, downloads } = this.#deps;
    if (brokenAtMs >= nowMs() - QUIET_MS || reads.has(name) || downloads.has(name)) return false;
    return await metadata.findNar(renamedNar(name, RECOMPRESSED)) === undefined;
  }

  async #encode(nar: NarRecord, kept: KeptFile): Promise<Exclude<Outcome, "not ours">> {
    const { publishing, folder, space, metrics, log } = this.#deps;
    const startedAtMs = clock.nowMs();
    const { name, narSize } = nar;
    const fileBytesMax = Math.min(narSize, Math.max(2 * kept.fileSize, narSize >> 1)) + (1 << 16);
    using loan = await space.lend(fileBytesMax);
    if (loan === undefined) return "no room";
    const path = `${folder}/${name}.${dice.uuid()}.part`;
    try {
      const encoded = await this.#encodeInto(path, nar, fileBytesMax, loan.signal);
      if (encoded === undefined) return "later";
      if (encoded.kind === "too-large") return "failed";
      if (encoded.kind === "undecodable") throw new Mismatch("undecodable", encoded.detail);
      const { narDigest, fileDigest, fileSize } = encoded;
      checkNarFacts(nar, { narHash: sha256FromDigest(narDigest), narSize: encoded.narSize });
      await this.#checkEncoded(path, nar, fileSize, loan.signal);
      if (!await this.#isFree(nar)) return "later";
      const reservation = loan.keep();
      await publishNar(publishing, {
        ...{ name, path, fileHash: sha256FromDigest(fileDigest), fileSize, form: RECOMPRESSED },
        reservedBytes: reservation.ledgerBytes,
        replaces: { at: kept.at, quietSinceMs: publishing.nowMs() - QUIET_MS },
      });
      await space.kept(reservation);
      const { backlogFiles, zstdBytes } = this.#counts;
      this.#counts = {
        backlogFiles: Math.max(0, backlogFiles - 1),
        zstdBytes: zstdBytes + fileSize,
      };
      this.#replaced.files++;
      this.#replaced.formerBytes += kept.fileSize;
      this.#replaced.zstdBytes += fileSize;
      const tookMs = clock.nowMs() - startedAtMs;
      metrics.series("recompressed_bytes_total", { form: "former" }).add(kept.fileSize);
      metrics.series("recompressed_bytes_total", { form: "zstd" }).add(fileSize);
      metrics.series("recompress_seconds_total", {}).add(tookMs / 1_000);
      const sizes = { former_size: kept.fileSize, file_size: fileSize };
      log.debug("nar recompressed", { nar: name, ...sizes, duration_ms: tookMs });
      return "replaced";
    } catch (error) {
      // A client took the room: the error of the work that it ended says nothing about the file.
      if (!loan.signal.aborted) throw error;
      return "later";
    } finally {
      removeIfPresent(path);
    }
  }

  /** `undefined` where the kept file is missing or damaged. */
  async #encodeInto(
    path: string,
    nar: NarRecord,
    fileBytesMax: number,
    calledIn: AbortSignal,
  ): Promise<Encoded | undefined> {
    const { kept, encoder, reads, level } = this.#deps;
    using either = new EitherSignal(this.#stopping.signal, calledIn);
    const { signal } = either;
    const { name, narSize } = nar;
    // Eviction spares the file meanwhile.
    const endRead = reads.begin(name);
    try {
      const file = await kept.find(nar, REQUEST_ID, { signal });
      if (file === undefined) return undefined;
      // Nothing reads it where its NAR is in memory.
      await using stored = file.stored;
      using decoded = this.#deps.decoded?.take(name);
      const compression = decoded === undefined ? nar.compression : "none";
      const order = { compression, narSize, path, fileBytesMax, level };
      using encoding = encoder.start(order, () => this.#idle());
      let isOver = false;
      encoding.encoded.then(() => isOver = true, () => isOver = true);
      // The thread may be at work, or wait for its turn.
      const end = () => encoding[Symbol.dispose]();
      if (signal.aborted) end();
      else signal.addEventListener("abort", end, { once: true });
      const pieces = decoded ? [decoded.nar] : stored.read(0, stored.fileSize, { signal });
      for await (const bytes of pieces) {
        for (let at = 0; at < bytes.length && !isOver; at += PIECE_BYTES) {
          await encoding.write(bytes.slice(at, at + PIECE_BYTES));
        }
        if (isOver) break;
      }
      encoding.end();
      return await encoding.encoded;
    } finally {
      endRead();
    }
  }

  /** Reads the new file once: no encoder is trusted with the only copy. */
  async #checkEncoded(
    path: string,
    nar: NarRecord,
    fileSize: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { narSize: narSizeMax } = nar;
    using checking = this.#deps.verifier.start({ path, compression: RECOMPRESSED, narSizeMax });
    checking.grown(fileSize, true);
    checkNar(nar, await unlessAborted(checking.measure, signal));
  }

  /** Waits until no client waits for anything. */
  async #idle(): Promise<void> {
    this.#stopping.signal.throwIfAborted();
    while (!this.#deps.isIdle()) {
      await clock.pause(IDLE_EVERY_MS, this.#stopping.signal);
      this.#stopping.signal.throwIfAborted();
    }
  }
}
