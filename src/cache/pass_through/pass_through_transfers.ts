import type { NarName } from "../../nix/nar_name.ts";
import { type DownloadProgress, type InFlight, progressOf } from "../download/download_progress.ts";
import { type DownloadState, knownFileSize } from "../download/download_state.ts";

interface Entry {
  readonly name: NarName;
  readonly startedAtMs: number;
  readonly state: () => DownloadState;
}

/** The pass-throughs in flight: one for each client. */
export class PassThroughTransfers implements InFlight {
  readonly #nowMs: () => number;
  readonly #entries = new Set<Entry>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get count(): number {
    return this.#entries.size;
  }

  progress(countMax: number): readonly DownloadProgress[] {
    return this.#entries.values()
      .map(({ name, startedAtMs, state }) => {
        const now = state();
        return progressOf({ name, startedAtMs, state: now, fileSize: knownFileSize(now) });
      })
      .filter((progress) => progress !== undefined)
      .take(countMax)
      .toArray();
  }

  /** Counts one pass-through until the scope of the result ends. */
  enter(name: NarName, state: () => DownloadState): Disposable {
    const entry = { name, startedAtMs: this.#nowMs(), state };
    this.#entries.add(entry);
    return { [Symbol.dispose]: () => void this.#entries.delete(entry) };
  }
}
