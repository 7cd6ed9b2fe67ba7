import { formatBytes, formatSpan } from "../../base/format_units.ts";
import type { TransferStats } from "./stats.ts";

type Progress = Pick<
  TransferStats,
  "received_bytes" | "file_bytes" | "bytes_per_second" | "seconds_left" | "state"
>;

const STATES: Readonly<Record<TransferStats["state"], readonly string[]>> = {
  opening: ["waiting for an upstream"],
  receiving: [],
  verifying: ["verifying"],
};

/** How far a transfer is, for people: `1.0 KiB of 2.0 KiB`, `512 B/s`, `2 s left`. */
export function transferWords(one: Progress): readonly string[] {
  const { received_bytes, file_bytes, bytes_per_second, seconds_left, state } = one;
  const whole = file_bytes === null ? "" : ` of ${formatBytes(file_bytes)}`;
  return [
    `${formatBytes(received_bytes)}${whole}`,
    ...bytes_per_second === null ? [] : [speed(bytes_per_second)],
    ...seconds_left === null ? [] : [`${formatSpan(Math.ceil(seconds_left))} left`],
    ...STATES[state],
  ];
}

function speed(bytesPerSecond: number): string {
  return bytesPerSecond === 0 ? "waiting for data" : `${formatBytes(bytesPerSecond)}/s`;
}
