import { ClientAddresses } from "../../base/client_addresses.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { type InFlight, progressOf, type TransferProgress } from "../fetch/nar_fetcher.ts";
import { knownFileSize } from "../verify/download_state.ts";
import type { ClientSink } from "./client_sink.ts";

/** One NAR file in flight to one client. */
export interface PassThroughTransfer {
  readonly name: NarName;
  /** The client's address; `undefined` if unknown. */
  readonly peer: string | undefined;
  /** Sink of the bytes; `undefined` before the first source. */
  readonly sink: () => Pick<ClientSink, "state" | "rate"> | undefined;
}

interface TransferEntry extends Omit<PassThroughTransfer, "peer"> {
  readonly startedAtMs: number;
  readonly clients: ClientAddresses;
}

const OPENING = { state: { state: "opening" }, rate: undefined } as const;

/** The pass-throughs in flight: one for each client. */
export class PassThroughTransfers implements InFlight {
  readonly #nowMs: () => number;
  readonly #entries = new Set<TransferEntry>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get count(): number {
    return this.#entries.size;
  }

  progress(countMax: number): readonly TransferProgress[] {
    return this.#entries.values()
      .map((entry) => {
        const { state, rate } = entry.sink() ?? OPENING;
        return progressOf({ ...entry, state, rate, fileSize: knownFileSize(state) });
      })
      .filter((progress) => progress !== undefined)
      .take(countMax)
      .toArray();
  }

  /** Counts one pass-through until the scope of the result ends. */
  enter({ peer, ...transfer }: PassThroughTransfer): Disposable {
    const clients = new ClientAddresses();
    clients.enter(peer);
    const entry = { ...transfer, clients, startedAtMs: this.#nowMs() };
    this.#entries.add(entry);
    return { [Symbol.dispose]: () => void this.#entries.delete(entry) };
  }
}
