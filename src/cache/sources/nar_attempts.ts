import { messageOf } from "../../base/failure.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { AttemptLog, type AttemptLogDeps } from "./attempt_log.ts";
import type { Download } from "../download/download.ts";
import { announcedFileSize } from "../nar_naming.ts";
import { keepDownload, type KeepDownloadDeps } from "../download/keep_download.ts";
import type { KeepOutageLog } from "../download/keep_outage_log.ts";
import { Mismatch } from "../verify/mismatch.ts";
import type { FetchEnd, FetchFailure, FetchOutcome } from "../fetch/nar_fetcher.ts";
import type { AskedSource } from "./source_race.ts";
import { type FailedTry, soundOf } from "./source_failures.ts";
import type { SourceRounds } from "./source_rounds.ts";
import type { Transfer, Transferred } from "../download/transfer.ts";

export interface NarAttemptsDeps extends KeepDownloadDeps, AttemptLogDeps {
  /** Told of what is not the upstreams' fault. */
  readonly keeping: KeepOutageLog;
}

export interface DownloadParts {
  readonly download: Download;
  readonly nar: NarRow;
  readonly transfer: Transfer;
  /** Told of what did not bring the rest of the file. */
  readonly sources: Pick<SourceRounds, "failed" | "startOver">;
  readonly requestId: string;
}

/** Why a download came to nothing; the reason is one of few. */
export interface DownloadFailure {
  readonly reason: FetchFailure | Mismatch["reason"] | "absent" | "broken";
  readonly detail: string;
}

/** One that is under way. `over` resolves when all that it came to is done. */
export interface Attempt extends AskedSource {
  readonly over: Promise<void>;
}

/** An attempt that is over. */
interface Tried {
  readonly source: NarSource;
  readonly addedBytes: number;
  readonly requests: number;
}

/** The attempts to bring one NAR file here, and what they have come to. */
export class NarAttempts {
  readonly #deps: NarAttemptsDeps;
  readonly #parts: DownloadParts;
  readonly #startedAtMs: number;
  readonly #notes: AttemptLog;
  #isOver = false;
  /** All bytes are here, and the verdict is not in. */
  #isJudging = false;
  /** Grows when the file starts over. */
  #round = 0;
  #failure: DownloadFailure = { reason: "absent", detail: "no upstream has it" };
  #unkept: "room" | "disk" | undefined;

  constructor(deps: NarAttemptsDeps, parts: DownloadParts) {
    this.#deps = deps;
    this.#parts = parts;
    this.#startedAtMs = deps.nowMs();
    this.#notes = new AttemptLog(deps, parts.nar.name, parts.requestId);
  }

  /** True when nothing more can be done, or need be. */
  get over(): boolean {
    return this.#isOver;
  }

  get failure(): DownloadFailure {
    return this.#failure;
  }

  /** Set when it is we who cannot take the file: there is no room for it, or the disk fails. */
  get unkept(): "room" | "disk" | undefined {
    return this.#unkept;
  }

  /** Nobody brought the file. */
  givenUp(): void {
    this.#notes.givenUp();
  }

  /** Asks `source` for what is missing. */
  ask(source: NarSource): Attempt {
    const { transfer } = this.#parts;
    const taken = Promise.withResolvers<boolean>();
    this.#notes.asking(source.upstream, transfer.received);
    const round = this.#round;
    const over = transfer.from(source, () => taken.resolve(true))
      .then((transferred) => {
        // Another source has brought the whole file meanwhile: this one has nothing to add.
        if (!this.#isJudging && round === this.#round) return this.#read(source, transferred);
      })
      .finally(() => taken.resolve(false));
    // The first to answer ends the others by itself.
    return { source, answered: taken.promise, over, cancel() {} };
  }

  async #read(source: NarSource, { outcome, addedBytes }: Transferred): Promise<void> {
    this.#notes.answered(source.upstream, outcome);
    const { requests = 1 } = outcome;
    const tried = { source, addedBytes, requests };
    if (outcome.type === "end") await this.#ended(outcome, tried);
    else if (outcome.type === "failed") this.#failed(outcome, tried);
    else {
      this.#notes.lost(source.upstream);
      this.#goOn("useless", tried);
    }
  }

  #goOn(how: FailedTry["how"], { source, ...tried }: Tried): void {
    this.#parts.sources.failed(source, { ...tried, how });
  }

  #failed({ reason, detail }: Extract<FetchOutcome, { type: "failed" }>, tried: Tried): void {
    if (reason === "outrun") return;
    const { upstream } = tried.source;
    this.#failure = { reason, detail };
    const how = soundOf(reason);
    if (how === undefined) return this.#cannotGoOn(reason, detail, upstream);
    if (reason === "size") {
      this.#notes.wrong(upstream, new Mismatch("file_size", detail), [upstream]);
    } else this.#brokeOff(upstream, detail);
    this.#goOn(how, tried);
  }

  #cannotGoOn(reason: FetchFailure, detail: string, upstream: string): void {
    this.#isOver = true;
    if (reason === "room" || reason === "disk") this.#unkept = reason;
    if (reason === "disk") this.#notKept(detail, upstream);
    else if (reason === "cancelled") {
      this.#deps.log.error("download failed", { ...this.#notes.facts(upstream), detail });
    }
  }

  async #ended(end: FetchEnd, tried: Tried): Promise<void> {
    const { download, nar, transfer } = this.#parts;
    const { upstream } = tried.source;
    this.#isJudging = true;
    try {
      await keepDownload(this.#deps, download, nar, { transfer, end });
      this.#kept(end, upstream);
    } catch (error) {
      const detail = messageOf(error);
      this.#failure = { reason: error instanceof Mismatch ? error.reason : "broken", detail };
      const mayGoOn = end.maybeShort && error instanceof Mismatch &&
        download.state.state === "receiving";
      if (mayGoOn && tried.addedBytes > 0) {
        this.#brokeOff(upstream, `${detail}, and nothing said where it ends`);
        return this.#goOn("loud", tried);
      }
      if (error instanceof Mismatch) return this.#wrong(error, tried, mayGoOn);
      this.#notKept(detail, upstream);
      this.#isOver = true;
    } finally {
      this.#isJudging = false;
    }
  }

  #wrong(mismatch: Mismatch, tried: Tried, mayGoOn: boolean): void {
    const { download, transfer, sources } = this.#parts;
    const { upstream } = tried.source;
    const { contributors } = transfer;
    transfer.judged(mismatch.reason);
    this.#notes.wrong(upstream, mismatch, contributors);
    if (mayGoOn) return this.#goOn("useless", tried);
    // Whoever has begun to read it cannot be given another file.
    this.#isOver = download.isPromised || download.state.state === "failed";
    if (this.#isOver) return;
    this.#round++;
    transfer.startOver();
    sources.startOver(contributors[0] ?? upstream);
  }

  #kept(end: FetchEnd, upstream: string): void {
    this.#isOver = true;
    const file_size = end.fileSize;
    this.#deps.keeping.kept(file_size);
    if (end.surplus) this.#notes.surplus(upstream);
    const duration_ms = this.#deps.nowMs() - this.#startedAtMs;
    const facts = { ...this.#notes.facts(upstream), file_size, duration_ms };
    this.#deps.log.info("nar cached successfully", facts);
  }

  #brokeOff(upstream: string, detail: string): void {
    this.#notes.brokeOff(upstream, { detail, received: this.#parts.transfer.received });
  }

  #notKept(detail: string, upstream: string): void {
    const { nar, transfer } = this.#parts;
    const fileSize = announcedFileSize(nar) ?? transfer.received;
    this.#deps.keeping.failed(fileSize, { ...this.#notes.facts(upstream), detail });
  }
}
