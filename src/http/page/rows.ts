import type { HistoryStats } from "../stats/stats.ts";
import { formatNumber } from "./format.ts";
import { type Html, markup, type Part } from "./markup.ts";

/** Maximum rows of a list. The page counts the further ones, and `?all` shows them. */
const ROWS_SHOWN = 20;

/** The rows in sight. The others are in a fold: on a phone the page has three screens at most. */
const ROWS_IN_SIGHT = 2;

/** The parameters of the page that all its lists share. */
export interface ListsLook {
  /** Show every row. */
  readonly isWhole: boolean;
  /** Range of the history: the link to all rows keeps it. */
  readonly range: HistoryStats["range"];
}

export interface RowsLook extends ListsLook {
  /** Total number of rows, if the list is truncated. */
  readonly count: number;
  /** The id of the section. */
  readonly section: string;
  /** Name of the list, of its own on the page. */
  readonly list: string;
  /** Rows of a longer list that are worth a place in sight: the first ones. */
  readonly inSight?: number;
  /** What all are where none is in sight: "12 up". */
  readonly allAre?: string;
  /** True if the fold is open. */
  readonly isOpen?: boolean;
  /** What stands below a whole list, instead of the number of rows that it does not have. */
  readonly rest?: Part;
}

/**
 * A list whose first rows are in sight, and further ones in a fold. Even open it has not all of a
 * long list: a page with hundreds of rows takes long to paint.
 */
export function rows<One>(all: readonly One[], look: RowsLook, show: (one: One) => Part): Html {
  const list = (some: readonly One[]) =>
    markup`${some.length > 0 && markup`<ul class="rows">${some.map(show)}</ul>`}`;
  if (look.isWhole) return markup`${list(all)}${look.rest ?? beyond(all.length, all.length, look)}`;
  if (look.count <= ROWS_IN_SIGHT) return list(all);
  const inSight = Math.min(ROWS_IN_SIGHT, look.inSight ?? ROWS_IN_SIGHT);
  const shown = Math.min(ROWS_SHOWN, all.length);
  return markup`${list(all.slice(0, inSight))}<details id="more-${look.list}" class="more"${
    look.isOpen && " open"
  }>
<summary id="show-${look.list}">${formatNumber(look.count - inSight)} ${
    inSight === 0 ? look.allAre : "more"
  }</summary>${list(all.slice(inSight, shown))}${beyond(shown, all.length, look)}</details>`;
}

/** The number of rows that the page does not have, with a link to those that are known. */
function beyond(shown: number, known: number, look: RowsLook): Part {
  const hidden = look.count - shown;
  return hidden > 0 &&
    markup`<p class="quiet">and ${formatNumber(hidden)} more${
      shown < known &&
      markup`. <a id="all-${look.list}"
 href="?all&amp;range=${look.range}#${look.section}">Show all</a>`
    }</p>`;
}
