import { messageOf } from "../../base/failure.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { AttemptNotes, type AttemptNotesDeps } from "./attempt_notes.ts";
import type { Download } from "./download.ts";
import { announcedFileSize } from "../nar_naming.ts";
import { keepDownload, type KeepDownloadDeps } from "./keep_download.ts";
import type { KeepingTrouble } from "./keeping_trouble.ts";
import { Mismatch } from "./mismatch.ts";
import type { FetchEnd, FetchFailure, FetchOutcome } from "./nar_fetcher.ts";
import type { Transfer } from "./transfer.ts";

/**
 * An upstream that adds less than this before it breaks off is not asked again at once: one that
 * gives a byte at a time would be asked for ever.
 */
const GROWN_BYTES_MIN = 64 * 1024;

export interface DownloadAttemptsDeps extends KeepDownloadDeps, AttemptNotesDeps {
  /** Told of what is not the upstreams' fault. */
  readonly keeping: KeepingTrouble;
}

export interface DownloadParts {
  readonly download: Download;
  readonly nar: NarRow;
  readonly transfer: Transfer;
  readonly requestId: string;
}

/** Why a download came to nothing; the reason is one of few. */
export interface DownloadFailure {
  readonly reason: FetchFailure | Mismatch["reason"] | "absent" | "broken";
  readonly detail: string;
}

/** "grown": it broke off, but added to the file. "stuck": it is of no use for now. */
export type AttemptResult = "kept" | "grown" | "stuck" | "over";

/** The attempts to bring one NAR file here, and what they have come to. */
export class DownloadAttempts {
  readonly #deps: DownloadAttemptsDeps;
  readonly #parts: DownloadParts;
  readonly #startedAtMs: number;
  /** Upstreams whose file is of no use for this download, by URL. */
  readonly #refused = new Set<string>();
  readonly #notes: AttemptNotes;
  #result: AttemptResult | undefined;
  #failure: DownloadFailure = { reason: "absent", detail: "no upstream has it" };
  #unkept: "room" | "disk" | undefined;
  #count = 0;
  #grownAt = performance.now();

  constructor(deps: DownloadAttemptsDeps, parts: DownloadParts) {
    this.#deps = deps;
    this.#parts = parts;
    this.#startedAtMs = deps.nowMs();
    this.#notes = new AttemptNotes(deps, parts.nar.name, parts.requestId);
  }

  /** True when nothing more can be done, or need be. */
  get over(): boolean {
    return this.#result === "kept" || this.#result === "over";
  }

  /** True when there are bytes, which somebody may have by now. */
  get begun(): boolean {
    return this.#parts.transfer.received > 0;
  }

  get count(): number {
    return this.#count;
  }

  /** When an attempt added to the file last; by performance.now(). */
  get grownAt(): number {
    return this.#grownAt;
  }

  get failure(): DownloadFailure {
    return this.#failure;
  }

  /** Set when it is we who cannot take the file: there is no room for it, or the disk fails. */
  get unkept(): "room" | "disk" | undefined {
    return this.#unkept;
  }

  /** Asks `source`, unless it has shown to be of no use. */
  async next(source: NarSource): Promise<AttemptResult> {
    if (this.#refused.has(source.upstream)) return "stuck";
    const { transfer } = this.#parts;
    const { upstream } = source;
    const before = transfer.received;
    this.#notes.asking(upstream, before);
    this.#count++;
    const outcome = await transfer.from(source);
    this.#notes.answered(upstream, outcome);
    const grown = transfer.received - before >= GROWN_BYTES_MIN;
    if (grown) this.#grownAt = performance.now();
    this.#result = await this.#read(outcome, grown, upstream);
    return this.#result;
  }

  async #read(outcome: FetchOutcome, grown: boolean, upstream: string): Promise<AttemptResult> {
    switch (outcome.type) {
      case "absent":
        this.#refused.add(upstream);
        this.#notes.lost(upstream);
        return "stuck";
      case "failed":
        return this.#failed(outcome, grown, upstream);
      case "end":
        return await this.#ended(outcome, grown, upstream);
    }
  }

  #failed(
    { reason, detail }: Extract<FetchOutcome, { type: "failed" }>,
    grown: boolean,
    upstream: string,
  ): AttemptResult {
    this.#failure = { reason, detail };
    if (reason === "room" || reason === "disk" || reason === "cancelled") {
      const told = { ...this.#notes.facts(upstream), detail };
      if (reason !== "cancelled") this.#unkept = reason;
      if (reason === "room") this.#deps.log.warn("nar not kept", told);
      else if (reason === "disk") this.#notKept(detail, upstream);
      else this.#deps.log.error("download failed", told);
      return "over";
    }
    if (reason === "size") {
      this.#notes.wrong(upstream, new Mismatch("file_size", detail), [upstream]);
    } else this.#brokeOff(upstream, detail);
    if (["timeout", "unreachable", "status"].includes(reason)) return "stuck";
    if (reason === "upstream") return grown ? "grown" : "stuck";
    this.#refused.add(upstream);
    return "stuck";
  }

  async #ended(end: FetchEnd, grown: boolean, upstream: string): Promise<AttemptResult> {
    const { download, nar, transfer } = this.#parts;
    try {
      await keepDownload(this.#deps, download, nar, { transfer, end });
      const duration_ms = this.#deps.nowMs() - this.#startedAtMs;
      const file_size = end.fileSize;
      this.#deps.keeping.kept(file_size);
      if (end.surplus) this.#notes.surplus(upstream);
      const facts = { ...this.#notes.facts(upstream), file_size, duration_ms };
      this.#deps.log.info("nar cached successfully", facts);
      return "kept";
    } catch (error) {
      const detail = messageOf(error);
      this.#failure = { reason: error instanceof Mismatch ? error.reason : "broken", detail };
      const mayGoOn = end.maybeShort && error instanceof Mismatch &&
        download.state.state === "receiving";
      if (mayGoOn && grown) {
        this.#brokeOff(upstream, `${detail}, and nothing said where it ends`);
        return "grown";
      }
      if (error instanceof Mismatch) {
        transfer.judged(error.reason);
        this.#notes.wrong(upstream, error, transfer.contributors);
      } else this.#notKept(detail, upstream);
      this.#refused.add(upstream);
      return mayGoOn ? "stuck" : "over";
    }
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
