import type { HistoryStats } from "../stats/stats.ts";
import { formatNumber } from "./format.ts";
import { type Html, markup, type Part } from "./markup.ts";

/** Maximum rows of a list. The page counts the further ones, and `?all` shows them. */
const ROWS_SHOWN = 20;

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
}

/** A list whose first rows are shown: a page with hundreds of them takes long to paint. */
export function rows<One>(all: readonly One[], look: RowsLook, show: (one: One) => Part): Html {
  const shown = look.isWhole ? all : all.slice(0, ROWS_SHOWN);
  const hidden = look.count - shown.length;
  return markup`<ul class="rows">${shown.map(show)}</ul>${
    hidden > 0 &&
    markup`<p class="quiet">and ${formatNumber(hidden)} more${
      shown.length < all.length &&
      markup`. <a id="all-${look.list}"
 href="?all&amp;range=${look.range}#${look.section}">Show all</a>`
    }</p>`
  }`;
}
