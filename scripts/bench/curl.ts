import type { Workplace } from "./workplace.ts";

export interface Transfer {
  readonly bytes: number;
  readonly seconds: number;
  /** Time from before connecting to the first byte of the answer. */
  readonly firstByteMs: number;
}

export interface Wanted {
  readonly url: string;
  /** Default: as many as come. */
  readonly bytes?: number;
}

/** Fetches a file with curl, which drops it. Throws unless it is a whole 200. */
export async function download(workplace: Workplace, wanted: Wanted): Promise<Transfer> {
  const output = await workplace.run({
    command: "curl",
    args: [
      ...["--silent", "--show-error", "--noproxy", "*", "--output", "/dev/null"],
      ...["--write-out", "%{http_code} %{size_download} %{time_total} %{time_starttransfer}"],
      wanted.url,
    ],
  });
  const [status, bytes = 0, seconds = 0, firstByte = 0] = output.split(" ").map(Number);
  if (status !== 200 || bytes !== (wanted.bytes ?? bytes)) {
    throw new Error(`Cannot measure ${wanted.url}: status ${status}, ${bytes} bytes`);
  }
  return { bytes, seconds, firstByteMs: firstByte * 1_000 };
}

/** MB/s of `clients` parallel curls, each with the whole file. */
export async function downloadRate(
  workplace: Workplace,
  wanted: Wanted,
  clients: number,
): Promise<number> {
  const transfers = await Promise.all(
    Array.from({ length: clients }, () => download(workplace, wanted)),
  );
  const bytes = transfers.reduce((sum, transfer) => sum + transfer.bytes, 0);
  return bytes / 1_000_000 / Math.max(...transfers.map((transfer) => transfer.seconds));
}
