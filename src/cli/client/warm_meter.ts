import { counted, formatBytes, formatSeconds } from "../../base/format_units.ts";
import type { WarmProgress } from "./warm_closure.ts";

/** Time window of the rate: long enough to be steady, short enough to follow. */
const WINDOW_MS = 10_000;

/** A rate of less time would mislead. */
const RATE_FROM_MS = 1_000;

const BAR_COLUMNS = 20;

/** Narrower terminals have no room for a bar beside the figures. */
const BAR_FROM_COLUMNS = 80;

/** Formats the progress of fetching a closure, with rate and time left. */
export class WarmMeter {
  #samples: { readonly atMs: number; readonly bytes: number }[] = [];

  /** `columns`: the terminal's width; `undefined` for a plain line without a bar. */
  line(progress: WarmProgress, nowMs: number, columns: number | undefined): string {
    const { pathsDone, pathsKnown, bytesDone, bytesKnown } = progress;
    const rate = this.#bytesPerSecond(bytesDone, nowMs);
    const paths = `${pathsDone}/${counted(pathsKnown, "path")}`;
    const figures = [paths, formatBytes(bytesDone)];
    if (rate !== undefined) figures.push(`${formatBytes(rate)}/s`);
    const bytesLeft = bytesKnown - bytesDone;
    if (rate && bytesLeft > 0) figures.push(`${formatSeconds(bytesLeft / rate)} left`);
    const text = figures.join("  ");
    if (columns === undefined || columns < BAR_FROM_COLUMNS) return text;
    return `${barOf(bytesKnown === 0 ? 0 : bytesDone / bytesKnown)} ${text}`;
  }

  /** `undefined` at first. */
  #bytesPerSecond(bytes: number, nowMs: number): number | undefined {
    this.#samples = this.#samples.filter(({ atMs }) => nowMs - atMs <= WINDOW_MS);
    this.#samples.push({ atMs: nowMs, bytes });
    const [first] = this.#samples;
    if (first === undefined || nowMs - first.atMs < RATE_FROM_MS) return undefined;
    return Math.max(0, Math.round((bytes - first.bytes) / ((nowMs - first.atMs) / 1_000)));
  }
}

function barOf(share: number): string {
  const full = Math.floor(Math.min(1, Math.max(0, share)) * BAR_COLUMNS);
  return `[${"#".repeat(full)}${"-".repeat(BAR_COLUMNS - full)}]`;
}
