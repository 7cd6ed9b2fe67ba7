import { ClientAddresses } from "../../base/client_addresses.ts";
import { RecentRate } from "../../base/recent_rate.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { InFlight, TransferProgress } from "../fetch/transfer_progress.ts";

export interface RunningUploadParts {
  readonly narName: NarName;
  /** The announced size. */
  readonly fileSize: number | undefined;
  /** The client's address; `undefined` if unknown. */
  readonly peer: string | undefined;
}

/** The progress of one upload. */
export interface RunningUpload extends Disposable {
  received(bytes: number): void;
  /** Call it after the last byte. */
  ended(): void;
}

/** The NAR uploads in flight. */
export class RunningUploads implements InFlight {
  readonly #nowMs: () => number;
  readonly #progress = new Set<() => TransferProgress>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get count(): number {
    return this.#progress.size;
  }

  progress(countMax: number): readonly TransferProgress[] {
    return this.#progress.values().take(countMax).map((progress) => progress()).toArray();
  }

  /** Counts one upload until the scope of the result ends. */
  enter({ peer, ...file }: RunningUploadParts): RunningUpload {
    const startedAtMs = this.#nowMs();
    const clients = new ClientAddresses();
    clients.enter(peer);
    const rate = new RecentRate(this.#nowMs);
    rate.note(0);
    let receivedBytes = 0;
    let state: TransferProgress["state"] = "receiving";
    const progress = () => ({
      ...{ ...file, state, receivedBytes, startedAtMs },
      bytesPerSecond: state === "receiving" ? rate.bytesPerSecond : undefined,
      clients: clients.listed(),
    });
    this.#progress.add(progress);
    return {
      received(bytes) {
        receivedBytes += bytes;
        rate.note(receivedBytes);
      },
      ended() {
        state = "verifying";
      },
      [Symbol.dispose]: () => void this.#progress.delete(progress),
    };
  }
}
