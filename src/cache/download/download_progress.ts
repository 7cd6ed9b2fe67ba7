import type { NarName } from "../../nix/nar_name.ts";
import type { Download } from "./download.ts";

/** How far a NAR file is on its way. */
export interface DownloadProgress {
  readonly narName: NarName;
  readonly state: "opening" | "receiving" | "verifying";
  /** Bytes of the file that are on disk. */
  readonly receivedBytes: number;
  /** Of the whole file, where that is known. */
  readonly fileSize: number | undefined;
  readonly startedAtMs: number;
}

/** `undefined` for a download that has failed. */
export function progressOf(download: Download): DownloadProgress | undefined {
  const { name: narName, state: now, fileSize, startedAtMs } = download;
  switch (now.state) {
    case "opening":
      return { narName, state: "opening", receivedBytes: 0, fileSize, startedAtMs };
    case "receiving":
      return { narName, state: "receiving", receivedBytes: now.received, fileSize, startedAtMs };
    case "received":
    case "kept": {
      return {
        narName,
        state: "verifying",
        receivedBytes: now.fileSize,
        fileSize,
        startedAtMs,
      };
    }
    case "failed":
      return undefined;
  }
}
