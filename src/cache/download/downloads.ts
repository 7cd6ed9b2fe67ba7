import { messageOf } from "../../base/failure.ts";
import type { NarRecord } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { ActiveReads } from "../../space/active_reads.ts";
import { Download, NotKept } from "./download.ts";
import { type DownloadProgress, progressOf, type UnderWay } from "./download_progress.ts";
import { GrowingFile } from "./growing_file.ts";
import { announcedFileSize } from "../nar/nar_naming.ts";
import { KeepOutageLog } from "./keep_outage_log.ts";
import { runDownload, type RunDownloadDeps } from "./run_download.ts";

export interface DownloadsDeps extends Omit<RunDownloadDeps, "outages"> {
  /** The folder of growing files, on the storage's file system so that they can be moved there. */
  readonly tempFolder: string;
  /** Counts each NAR that is downloaded. */
  readonly reads: Pick<ActiveReads, "begin">;
}

/** The downloads in flight: one for each NAR file, however many clients request it. */
export class Downloads implements UnderWay {
  readonly #deps: DownloadsDeps & RunDownloadDeps;
  readonly #underWay = new Map<NarName, Download>();
  readonly #running = new Set<Promise<void>>();

  constructor(deps: DownloadsDeps) {
    const { log, metrics } = deps.attempts.logging;
    this.#deps = { ...deps, outages: new KeepOutageLog(log, metrics) };
  }

  /** How many downloads are in flight. */
  get count(): number {
    return this.#underWay.size;
  }

  find(narName: NarName): Download | undefined {
    return this.#underWay.get(narName);
  }

  /** The progress of at most `countMax` downloads, the oldest first. */
  progress(countMax: number): readonly DownloadProgress[] {
    const shown: DownloadProgress[] = [];
    for (const download of this.#underWay.values()) {
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
  join(nar: NarRecord, requestId: string): { download: Download; joined: boolean } {
    const underWay = this.#underWay.get(nar.name);
    if (underWay !== undefined) return { download: underWay, joined: true };
    const file = this.#makeGrowingFile(nar, requestId);
    const use = file.use();
    const end = this.#deps.reads.begin(nar.name);
    const { keeping, tracer } = this.#deps.transfer;
    const download = new Download(nar.name, file, keeping.nowMs());
    this.#underWay.set(nar.name, download);
    const start = { name: "download nar", facts: { "larder.nar": nar.name } };
    const running = tracer.span(start, async (span) => {
      const failure = await runDownload(this.#deps, download, nar, requestId);
      if (failure !== undefined) span.fail(failure.reason);
    }).finally(() => {
      this.#underWay.delete(nar.name);
      this.#running.delete(running);
      use[Symbol.dispose]();
      end();
    });
    this.#running.add(running);
    return { download, joined: false };
  }

  /** Resolves when no download is in flight. */
  async over(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  #makeGrowingFile(nar: NarRecord, request_id: string): GrowingFile {
    const { tempFolder: dir, outages } = this.#deps;
    try {
      return makeGrowingFile(dir, nar.name);
    } catch (error) {
      const detail = `Cannot begin download: ${messageOf(error)}`;
      outages.failed(announcedFileSize(nar) ?? 0, { nar: nar.name, detail, request_id });
      throw new NotKept("unavailable", detail, { nar: nar.name }, error);
    }
  }
}

/** Where it throws it leaves no file behind: descriptors may have run out. */
function makeGrowingFile(dir: string, nar: NarName): GrowingFile {
  const path = Deno.makeTempFileSync({ dir, prefix: `${nar}.`, suffix: ".part" });
  try {
    return new GrowingFile(path);
  } catch (error) {
    Deno.removeSync(path);
    throw error;
  }
}
