import { Html, markup } from "./markup.ts";

/** Shelves with jars, in a square of 32. */
const SHELVES = '<path d="M6 15.5h20M6 26h20" stroke-width="2" stroke-linecap="round"/>' +
  '<path stroke="none" d="M8 8h5v6H8zM14.5 5.5h4V14h-4zM20 9.5h4.5V14H20z' +
  'M8 19h6.5v5.5H8zM16.5 17h3.5v7.5h-3.5zM21.5 20.5h3v4h-3z"/>';

/** The mark beside the name; its colours are those of the page. */
export const MARK: Html = markup`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect
 width="32" height="32" rx="8"/><g>${new Html(SHELVES)}</g></svg>`;

/** The same as an icon in an address, which needs no request. */
export const ICON_URL = `data:image/svg+xml,${
  encodeURIComponent(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">' +
      `<rect width="32" height="32" rx="8" fill="#2a5ac8"/>` +
      `<g fill="#fff" stroke="#fff">${SHELVES}</g></svg>`,
  )
}`;
