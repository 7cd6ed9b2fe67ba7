import pLimit from "p-limit";
import { messageOf } from "../../base/failure.ts";
import type { NarFinder, NarRecord } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { narNameOfReceived } from "./received_path.ts";

export interface ReceivedFilesDeps {
  readonly metadata: Pick<NarFinder, "findNar">;
  readonly isInFlight: (narName: NarName) => boolean;
  /** Verifies the file, and keeps it if it is right. Never rejects. */
  readonly verify: (file: ReceivedFile) => Promise<void>;
  /** Files that are verified at once, beside those that a client waits for. */
  readonly atOnceMax: number;
  /** True while the process stops: the next one verifies the waiting files. */
  readonly isStopping: () => boolean;
  readonly log: Pick<Logger, "warn">;
}

/** A whole file that another process left. */
export interface ReceivedFile {
  readonly nar: NarRecord;
  readonly path: string;
  readonly fileSize: number;
  /** The time of its last byte. */
  readonly receivedAtMs: number;
  /** Tries so far. */
  readonly tries: number;
}

/**
 * A file without room gets another try with each search for dead members, which is each ten
 * seconds: until then the dead one's reservation counts.
 */
const TRIES_MAX = 6;

/** The whole files of other processes that are not verified yet, and their tries. */
export class ReceivedFiles {
  readonly #deps: ReceivedFilesDeps;
  readonly #limit: ReturnType<typeof pLimit>;
  /** All files without a check result. */
  readonly #files = new Map<NarName, ReceivedFile>();
  /** The names of files whose check has not begun. */
  readonly #waiting = new Set<NarName>();
  /** Files for the next run of `verify`. */
  #added: ReceivedFile[] = [];

  constructor(deps: ReceivedFilesDeps) {
    this.#deps = deps;
    this.#limit = pLimit(deps.atOnceMax);
  }

  has(narName: NarName): boolean {
    return this.#files.has(narName);
  }

  /** All files without a check result. */
  list(): Iterable<ReceivedFile> {
    return this.#files.values();
  }

  /** The file, which its caller verifies at once; `undefined` once a check runs. */
  take(narName: NarName): ReceivedFile | undefined {
    return this.#waiting.delete(narName) ? this.#files.get(narName) : undefined;
  }

  /** The file waits for another try. False after the last one. */
  putBack(file: ReceivedFile): boolean {
    if (file.tries >= TRIES_MAX) return false;
    const again = { ...file, tries: file.tries + 1 };
    this.#files.set(file.nar.name, again);
    this.#waiting.add(file.nar.name);
    this.#added.push(again);
    return true;
  }

  /** This try is over. Unless the file was put back, it has its check result. */
  over(file: ReceivedFile): void {
    const { name } = file.nar;
    if (this.#files.get(name) === file) this.#files.delete(name);
  }

  /**
   * Adds whole files that other processes left. Removes a file whose NAR is stored, in flight or
   * unknown. Never rejects.
   */
  async add(paths: readonly string[]): Promise<void> {
    await Promise.all(paths.map((path) => this.#add(path)));
  }

  /** Tries each once, small ones first. Resolves when they are verified. Never rejects. */
  async verify(): Promise<void> {
    const files = this.#added.sort((a, b) => a.fileSize - b.fileSize);
    this.#added = [];
    const { isStopping, verify } = this.#deps;
    await Promise.all(files.map(({ nar }) =>
      this.#limit(async () => {
        const file = isStopping() ? undefined : this.take(nar.name);
        if (file !== undefined) await verify(file);
      })
    ));
  }

  async #add(path: string): Promise<void> {
    const { metadata, isInFlight, log } = this.#deps;
    const name = narNameOfReceived(path);
    try {
      const nar = name && await metadata.findNar(name);
      if (nar && nar.kept === undefined && !isInFlight(nar.name) && !this.has(nar.name)) {
        const { size: fileSize, mtime } = Deno.statSync(path);
        const file = { nar, path, fileSize, receivedAtMs: mtime?.getTime() ?? Infinity, tries: 1 };
        this.#files.set(nar.name, file);
        this.#waiting.add(nar.name);
        this.#added.push(file);
      } else Deno.removeSync(path);
    } catch (error) {
      log.warn("received nar not resumed", { path, error: messageOf(error) });
    }
  }
}
