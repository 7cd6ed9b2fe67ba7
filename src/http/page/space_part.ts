import type { SizeStats, Stats } from "../stats/stats.ts";
import { formatBytes } from "../../base/format_units.ts";
import { formatPercent } from "./format.ts";
import { type Html, markup } from "./markup.ts";

/** A share of the bar. */
interface Share {
  readonly id: "pinned" | "cached" | "reserved" | "free";
  readonly name: string;
  readonly bytes: number;
}

/** The width of the bar, in units of its own. */
const WIDTH = 1_000;

/** The space as one bar: what is pinned, cached, reserved and free, up to the limit or the disk. */
export function spacePart({ size }: Stats): Html {
  const shares = sharesOf(size);
  const whole = Math.max(1, shares.reduce((sum, { bytes }) => sum + bytes, 0));
  let x = 0;
  const parts = shares.map(({ id, bytes }) => {
    const width = bytes / whole * WIDTH;
    const part = markup`<rect class="${id}" x="${x.toFixed(1)}" width="${
      // What is there is seen, however small.
      (bytes > 0 ? Math.max(width, 3) : 0).toFixed(1)}" height="20"/>`;
    x += width;
    return part;
  });
  const told = shares.map(({ name, bytes }) => `${name} ${formatBytes(bytes)}`).join(", ");
  return markup`<p class="headline">${headline(size)}</p>
<svg class="stack" viewBox="0 0 ${WIDTH} 20" preserveAspectRatio="none" role="img"
 aria-label="${told}">${parts}</svg>
<ul class="key">${
    shares.map(({ id, name, bytes }) =>
      markup`<li><span class="swatch ${id}"></span>${name} <b>${formatBytes(bytes)}</b></li>`
    )
  }</ul><p class="quiet">${notes(size)}</p>`;
}

function headline({ used_bytes, limit_bytes }: SizeStats): Html {
  if (limit_bytes === null) return markup`<b>${formatBytes(used_bytes)}</b> used, without a limit`;
  const part = limit_bytes === 0 ? 1 : used_bytes / limit_bytes;
  return markup`<b>${formatBytes(used_bytes)}</b> of ${formatBytes(limit_bytes)} used (${
    formatPercent(part)
  })`;
}

function sharesOf(size: SizeStats): readonly Share[] {
  const { used_bytes, pinned_bytes, reserved_bytes, limit_bytes, disk_free_bytes } = size;
  const pinned = Math.min(pinned_bytes, used_bytes);
  const free = limit_bytes === null
    ? disk_free_bytes
    : Math.max(0, limit_bytes - used_bytes - reserved_bytes);
  return [
    { id: "pinned", name: "Pinned", bytes: pinned },
    { id: "cached", name: "Cached", bytes: used_bytes - pinned },
    { id: "reserved", name: "Reserved", bytes: reserved_bytes },
    ...free === null ? [] : [{ id: "free", name: "Free", bytes: free } as const],
  ];
}

function notes(size: SizeStats): string {
  const { limit_bytes, used_bytes, disk_free_bytes, evicted_bytes } = size;
  const left = limit_bytes === null ? undefined : limit_bytes - used_bytes;
  const isShort = left !== undefined && disk_free_bytes !== null && left > disk_free_bytes;
  return [
    ...limit_bytes === null ? [] : [`The limit is ${formatBytes(limit_bytes)}.`],
    ...disk_free_bytes === null ? [] : [
      `The disk has ${formatBytes(disk_free_bytes)} free` +
      `${isShort ? ", which is less than the limit needs" : ""}.`,
    ],
    `${formatBytes(evicted_bytes)} evicted since the start.`,
  ].join(" ");
}
