import type { NarName } from "../../nix/nar_name.ts";
import type { DownloadProgress, UnderWay } from "../download/download_progress.ts";

/** How far a NAR file is that is passed on; `undefined` before an upstream has answered. */
export type TransferLook = () => UnkeptReceived | undefined;

export interface UnkeptReceived {
  readonly receivedBytes: number;
  readonly fileSize: number | undefined;
}

interface Entry {
  readonly narName: NarName;
  readonly startedAtMs: number;
  readonly look: TransferLook;
}

/** The NAR files that are being passed on without being kept: one for each client. */
export class PassThroughTransfers implements UnderWay {
  readonly #nowMs: () => number;
  readonly #entries = new Set<Entry>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get count(): number {
    return this.#entries.size;
  }

  progress(countMax: number): readonly DownloadProgress[] {
    return [...this.#entries.values().take(countMax)].map(progressOf);
  }

  /** One is under way until the scope of the result ends. */
  enter(narName: NarName, look: TransferLook): Disposable {
    const entry = { narName, startedAtMs: this.#nowMs(), look };
    this.#entries.add(entry);
    return { [Symbol.dispose]: () => void this.#entries.delete(entry) };
  }
}

function progressOf({ narName, startedAtMs, look }: Entry): DownloadProgress {
  const known = look();
  const { receivedBytes, fileSize } = known ?? { receivedBytes: 0, fileSize: undefined };
  const received = receivedBytes === fileSize ? "verifying" : "receiving";
  const state = known === undefined ? "opening" : received;
  return { narName, state, receivedBytes, fileSize, startedAtMs };
}
