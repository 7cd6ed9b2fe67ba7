import {
  type CacheAddress,
  clientWays,
  HOST_PLACEHOLDER,
  HOST_PLACEHOLDER_HINT,
} from "../../nix/client_ways.ts";
import { type Html, markup } from "./markup.ts";

/**
 * How to use this cache, as a section. It is open in a new cache; later it is a fold, which a link
 * to `#use` opens.
 */
export function usePart(
  address: CacheAddress,
  { isFolded }: { readonly isFolded: boolean },
): Html {
  const title = markup`<h2 id="use-title">Use this cache</h2>`;
  const isUnknown = address.url.includes(HOST_PLACEHOLDER);
  const hint = isUnknown &&
    markup`<p class="quiet">To use the lines, ${HOST_PLACEHOLDER_HINT}.</p>`;
  const lines = markup`<div id="use">${hint}${tabs(address)}
<p id="copied" role="status"></p></div>`;
  return markup`<section aria-labelledby="use-title">${
    isFolded
      ? markup`<details class="fold"><summary id="use-shown">${title}</summary>${lines}</details>`
      : markup`${title}${lines}`
  }</section>`;
}

/** A tab for each kind of client. Radio buttons need no script. */
function tabs(address: CacheAddress): Html {
  const all = clientWays(address);
  const isOpen = (index: number) => index === 0 && markup` checked`;
  return markup`<fieldset class="tabs" data-url="${address.url}">
<legend class="aside">Kind of client</legend>${
    all.map(({ id, name }, index) =>
      markup`<input type="radio" name="use" id="use-${id}"${
        isOpen(index)
      }><label for="use-${id}">${name}</label>`
    )
  }${
    all.map(({ id, name, instruction, lines }) =>
      markup`<div class="panel" data-tab="${id}"><p class="quiet">${instruction}</p>
<div class="lines"><pre id="lines-${id}" tabindex="0"
 aria-label="Lines for ${name}"><code>${lines}</code></pre>
<button type="button" class="copy" hidden>Copy</button></div></div>`
    )
  }</fieldset>`;
}
