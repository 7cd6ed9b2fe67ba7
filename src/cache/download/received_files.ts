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
  readonly log: Pick<Logger, "warn">;
}

/** A whole file that another process left. */
export interface ReceivedFile {
  readonly nar: NarRecord;
  readonly path: string;
}

/** The whole files of other processes that wait for their turn to be verified. */
export class ReceivedFiles {
  readonly #deps: ReceivedFilesDeps;
  readonly #waiting = new Map<NarName, ReceivedFile>();

  constructor(deps: ReceivedFilesDeps) {
    this.#deps = deps;
  }

  has(narName: NarName): boolean {
    return this.#waiting.has(narName);
  }

  /** The file, which its caller verifies at once. */
  take(narName: NarName): ReceivedFile | undefined {
    const file = this.#waiting.get(narName);
    this.#waiting.delete(narName);
    return file;
  }

  /**
   * Whole files that nobody verifies yet. One that is kept already or being downloaded goes, and
   * one of an unknown NAR. Never rejects.
   */
  async add(paths: readonly string[]): Promise<void> {
    await Promise.all(paths.map((path) => this.#add(path)));
  }

  /** Resolves when those that wait are verified. Never rejects. */
  async verify(): Promise<void> {
    await Promise.all([...this.#waiting.keys()].map(async (narName) => {
      const file = this.take(narName);
      if (file !== undefined) await this.#deps.verify(file);
    }));
  }

  async #add(path: string): Promise<void> {
    const { metadata, isInFlight, log } = this.#deps;
    const name = narNameOfReceived(path);
    try {
      const nar = name && await metadata.findNar(name);
      if (nar && nar.kept === undefined && !isInFlight(nar.name) && !this.has(nar.name)) {
        this.#waiting.set(nar.name, { nar, path });
      } else Deno.removeSync(path);
    } catch (error) {
      log.warn("received nar not resumed", { path, error: messageOf(error) });
    }
  }
}
