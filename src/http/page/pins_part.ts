import type { PinnedRootStats, Stats } from "../stats/stats.ts";
import { counted, formatBytes } from "../../base/format_units.ts";
import { ago, formatNumber } from "./format.ts";
import { type Html, markup } from "./markup.ts";
import { type ListsLook, rows } from "./rows.ts";

/** The pinned roots, and the paths and bytes that each keeps. */
export function pinsPart({ pins, at }: Pick<Stats, "pins" | "at">, look: ListsLook): Html {
  if (pins === null) return markup`<p class="none">The pins cannot be read at the moment.</p>`;
  const { count, counted_at, roots } = pins;
  if (count === 0) {
    return markup`<p class="none">Nothing is pinned.
 A pin keeps a store path and all that it needs.</p>`;
  }
  const isCounting = roots.some(({ bytes }) => bytes === null);
  const shown = { count, section: "packages", list: "pins", ...look };
  return markup`${rows(roots, shown, (one) => pin(one, at))}${
    counted_at !== null && !isCounting &&
    markup`<p class="quiet">Sizes were counted ${ago(counted_at, at)}.</p>`
  }`;
}

function pin({ root, name, pinned_at, stored, missing, bytes }: PinnedRootStats, at: string): Html {
  const facts = stored === null || missing === null || bytes === null
    ? "being counted"
    : `${formatBytes(bytes)}, ${counted(stored, "path")} here, ${formatNumber(missing)} missing`;
  return markup`<li class="pin"><div><a id="pin-of-${root}" class="strong"
 href="?q=${root}#packages">${name ?? root}</a>${
    name !== null && markup` <code>${root}</code>`
  }</div><span
 class="detail">${facts}, pinned ${ago(pinned_at, at)}</span>${
    unpinForm({ root, name: name ?? root, section: "pins" })
  }</li>`;
}

export interface UnpinForm {
  readonly root: string;
  readonly name: string;
  /** The part of the page with this form: both may list the same root. */
  readonly section: "pins" | "packages";
}

/** Opening it is the first step, the button the second one. */
export function unpinForm({ root, name, section }: UnpinForm): Html {
  return markup`<details class="act"><summary id="${section}-unpin-${root}">Unpin</summary>
<form method="post" action="page/unpin"><input type="hidden" name="path" value="${root}">
<button aria-label="End this protection of ${name}">End this protection</button></form></details>`;
}
