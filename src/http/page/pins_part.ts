import { WATCHED_ROOTS_MAX } from "../../pins/pin_watch.ts";
import type { PinnedRootStats, Stats } from "../stats/stats.ts";
import { counted, formatBytes } from "../../base/format_units.ts";
import { ago, formatNumber } from "./format.ts";
import { type Html, markup, type Part } from "./markup.ts";
import { unpinForm } from "./actions_part.ts";
import { type ListsLook, rows } from "./rows.ts";

export interface PinsLook extends ListsLook {
  readonly mayManage: boolean;
  /** As many of the newest pins are not in this list. */
  readonly pinsFrom: number;
  /** The name of the pin that the reader has ended a moment ago. */
  readonly unpinned: string | undefined;
}

/** The pinned roots, and the paths and bytes that each keeps. */
export function pinsPart(
  { pins, size, at }: Pick<Stats, "pins" | "at"> & {
    readonly size: Pick<Stats["size"], "pinned_bytes">;
  },
  { mayManage, pinsFrom, unpinned, ...look }: PinsLook,
): Html {
  if (pins === null) return markup`<p class="none">The pins cannot be read at the moment.</p>`;
  const { count, counted_at, roots } = pins;
  if (count === 0) {
    return markup`<p class="none">Nothing is pinned.
 A pin keeps a store path and all that it needs.</p>`;
  }
  const isCounting = roots.some(({ bytes }) => bytes === null);
  const shown = {
    ...{ count, section: "packages", list: "pins", ...look },
    ...{ inSight: 0, allAre: "pins", isOpen: unpinned !== undefined },
    rest: turns({ from: pinsFrom, shown: roots.length, count, range: look.range }),
  };
  const sum = count > 1 &&
    markup`<p class="quiet">All ${formatNumber(count)} keep ${
      formatBytes(size.pinned_bytes)
    } together: a file that several reach counts once.</p>`;
  return markup`${sum}${rows(roots, shown, (one) => pin(one, { at, mayManage }))}${
    counted_at !== null && !isCounting &&
    markup`<p class="quiet">Sizes were counted ${ago(counted_at, at)}.</p>`
  }`;
}

function pin(
  { root, name, pinned_at, stored, missing, bytes, own_bytes, under, rolls, ...notes }:
    PinnedRootStats,
  { at, mayManage }: { readonly at: string; readonly mayManage: boolean },
): Html {
  const facts = stored === null || missing === null || bytes === null
    ? "being counted"
    : `${formatBytes(own_bytes ?? 0)} of its own, ${formatBytes(bytes)} in all, ${
      counted(stored, "path")
    } here, ${formatNumber(missing)} missing`;
  const holders = under.length > 0 && ` under ${under.join(", ")}${rolls ? "" : " and by hand"}`;
  return markup`<li class="pin"><div><a id="pin-of-${root}" class="strong"
 href="?q=${root}#packages">${name ?? root}</a>${
    name !== null && markup` <code>${root}</code>`
  }</div><span
 class="detail">${facts}, pinned ${ago(pinned_at, at)}${holders}</span><span
 class="detail">${completeness(notes, missing ?? 0, at)}</span>${
    mayManage && unpinForm({ root, name, section: "pins" })
  }</li>`;
}

interface Turns {
  readonly from: number;
  readonly shown: number;
  readonly count: number;
  readonly range: string;
}

/** Links to the pins before and behind those of a long list. */
function turns({ from, shown, count, range }: Turns): Part {
  const link = (id: string, at: number, words: string) =>
    markup` <a id="${id}" href="?all&amp;pins=${at}&amp;range=${range}#pins">${words}</a>`;
  const newer = Math.max(0, Math.min(from, count) - WATCHED_ROOTS_MAX);
  return shown < count &&
    markup`<p class="quiet">${
      shown === 0
        ? "No pins are that far back."
        : `Pins ${formatNumber(from + 1)} to ${formatNumber(from + shown)} of ${
          formatNumber(count)
        }.`
    }${from > 0 && link("newer-pins", newer, "Newer")}${
      from + shown < count && link("older-pins", from + shown, "Older")
    }</p>`;
}

/** Whether its closure could be copied without an upstream. */
function completeness(
  { keep_complete, look }: Pick<PinnedRootStats, "keep_complete" | "look">,
  missingNow: number,
  at: string,
): Html {
  if (look === null) {
    return markup`Its paths are being looked at, for the first time${
      keep_complete && ": larder fetches those that are missing"
    }`;
  }
  const { paths, missing, upstream, nowhere, unasked = 0, examples } = look;
  if (missing === 0 && missingNow > 0) {
    return markup`Incomplete: ${
      counted(missingNow, "path")
    } missing since the last look, and larder looks again`;
  }
  if (missing === 0) {
    return markup`Complete${keep_complete && ", and larder keeps it so"}: ${
      paths === 1 ? "its 1 path is" : `all ${counted(paths, "path")} are`
    } here, looked at ${ago(look.at, at)}`;
  }
  const unknown = missing - upstream - nowhere - unasked;
  const where = [
    ...upstream > 0 ? [`${formatNumber(upstream)} upstream still has`] : [],
    ...nowhere > 0 ? [`${formatNumber(nowhere)} nowhere`] : [],
    ...unknown > 0 ? [`${formatNumber(unknown)} unknown`] : [],
    ...unasked > 0 ? [`${formatNumber(unasked)} not asked yet`] : [],
  ];
  const more = missing > examples.length ? " and others" : "";
  return markup`Incomplete: ${counted(missing, "path")} missing (${where.join(", ")}): ${
    examples.join(", ")
  }${more}, looked at ${ago(look.at, at)}`;
}
