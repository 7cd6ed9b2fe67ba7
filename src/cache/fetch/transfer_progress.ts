import type { ClientAddresses, ListedClients } from "../../base/client_addresses.ts";
import type { RecentRate } from "../../base/recent_rate.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { DownloadState } from "./download_state.ts";

/** The progress of one NAR file in flight. */
export interface TransferProgress {
  readonly narName: NarName;
  readonly state: "opening" | "receiving" | "verifying";
  /** Bytes of the file on disk, or received for a pass-through or from an upload. */
  readonly receivedBytes: number;
  /** The size of the whole file, where it is known. */
  readonly fileSize: number | undefined;
  /** Rate of the last seconds; `undefined` in the first one, and while no bytes are expected. */
  readonly bytesPerSecond: number | undefined;
  readonly startedAtMs: number;
  readonly clients: ListedClients;
}

/** A download, or a pass-through. */
interface TransferFacts extends Pick<TransferProgress, "fileSize" | "startedAtMs"> {
  readonly name: NarName;
  readonly state: DownloadState;
  readonly clients: Pick<ClientAddresses, "listed">;
  /** `undefined` before the first source. */
  readonly rate: RecentRate | undefined;
}

/** NAR files in flight. */
export interface InFlight {
  readonly count: number;
  /** The progress of at most `countMax` files, the oldest first. */
  progress(countMax: number): readonly TransferProgress[];
}

/** The files in flight of several places together. */
export function allInFlight(places: readonly InFlight[]): InFlight {
  return {
    get count() {
      return places.reduce((sum, { count }) => sum + count, 0);
    },
    progress: (countMax) =>
      places.flatMap((place) => place.progress(countMax))
        .toSorted((a, b) => a.startedAtMs - b.startedAtMs)
        .slice(0, countMax),
  };
}

/** `undefined` for a transfer that has failed. */
export function progressOf(
  { name: narName, state: now, fileSize, startedAtMs, clients, rate }: TransferFacts,
): TransferProgress | undefined {
  const bytesPerSecond = now.state === "receiving" ? rate?.bytesPerSecond : undefined;
  const common = { narName, fileSize, bytesPerSecond, startedAtMs, clients: clients.listed() };
  switch (now.state) {
    case "opening":
      return { ...common, state: "opening", receivedBytes: 0 };
    case "receiving":
      return { ...common, state: "receiving", receivedBytes: now.received };
    case "received":
    case "kept":
      return { ...common, state: "verifying", receivedBytes: now.fileSize };
    case "failed":
      return undefined;
  }
}
