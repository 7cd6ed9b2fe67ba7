import type { SizeStats, Stats } from "../stats/stats.ts";
import { formatBytes } from "../../base/format_units.ts";
import { limitOrigin } from "../../space/size_limit.ts";
import { formatPercent } from "./format.ts";
import { type Html, markup } from "./markup.ts";

/** A share of the bar. */
interface Share {
  readonly id: "pinned" | "cached" | "reserved" | "free" | "beyond";
  readonly name: string;
  readonly bytes: number;
}

/** The width of the bar, in units of its own. */
const WIDTH = 1_000;

/** The space as one bar up to the limit, or without one to the end of the disk. */
export function spacePart({ size }: Pick<Stats, "size">): Html {
  const shares = sharesOf(size);
  const whole = Math.max(1, shares.reduce((sum, { bytes }) => sum + bytes, 0));
  let x = 0;
  const parts = shares.map(({ id, bytes }) => {
    const width = bytes / whole * WIDTH;
    const part = markup`<rect class="${id}" x="${x.toFixed(1)}" width="${
      // A small share is visible, too.
      (bytes > 0 ? Math.max(width, 3) : 0).toFixed(1)}" height="20"/>`;
    x += width;
    return part;
  });
  const label = [...shares.map(({ name, bytes }) => `${name} ${formatBytes(bytes)}`), end(size)]
    .filter((text) => text !== "").join(", ");
  return markup`<p class="headline">${headline(size)}</p>
<svg class="stack" viewBox="0 0 ${WIDTH} 20" preserveAspectRatio="none" role="img"
 aria-label="${label}">${parts}</svg>
<p class="ends" aria-hidden="true"><span>0 B</span><span>${end(size)}</span></p>
<ul class="key">${
    shares.map(({ id, name, bytes }) =>
      markup`<li><span class="swatch ${id}"></span>${name} <b>${formatBytes(bytes)}</b></li>`
    )
  }${
    size.limit_bytes !== null && size.disk_free_bytes !== null &&
    markup`<li><span class="swatch disk"></span>Free on the disk <b>${
      formatBytes(size.disk_free_bytes)
    }</b></li>`
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
  const left = limit_bytes === null
    ? disk_free_bytes
    : Math.max(0, limit_bytes - used_bytes - reserved_bytes);
  const free = left === null ? null : Math.min(left, disk_free_bytes ?? left);
  const beyond = (left ?? 0) - (free ?? 0);
  return [
    { id: "pinned", name: "Pinned", bytes: pinned },
    { id: "cached", name: "Cached", bytes: used_bytes - pinned },
    { id: "reserved", name: "Reserved", bytes: reserved_bytes },
    ...free === null ? [] : [{ id: "free", name: "Free", bytes: free } as const],
    ...beyond === 0 ? [] : [{ id: "beyond", name: "Missing on the disk", bytes: beyond } as const],
  ];
}

/** Label of the right end of the bar. */
function end({ limit_bytes, disk_free_bytes }: SizeStats): string {
  if (limit_bytes !== null) return `limit ${formatBytes(limit_bytes)}`;
  return disk_free_bytes === null ? "" : "end of the disk";
}

function notes(size: SizeStats): string {
  const { limit_bytes, used_bytes, disk_free_bytes, evicted_bytes, database_bytes } = size;
  const left = limit_bytes === null ? undefined : limit_bytes - used_bytes;
  const isShort = left !== undefined && disk_free_bytes !== null && left > disk_free_bytes;
  const origin = limitOrigin(size.limit_source, size.disk_reserve_bytes);
  const evicted = `${limit_bytes === null ? "No limit" : "The limit"} is from ${origin}. ` +
    `${formatBytes(evicted_bytes)} evicted since the start. The database takes ${
      formatBytes(database_bytes)
    }.`;
  const zstd = size.recompressed_bytes;
  const faster = zstd > 0 ? ` Faster pulls: ${formatBytes(zstd)} now in zstd.` : "";
  return `${isShort ? "The disk is too small for the limit. " : ""}${evicted}${faster}`;
}
