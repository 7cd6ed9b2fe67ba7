import { type Html, markup, type Part } from "./markup.ts";

/** The forms of the page. Opening one is the first step, its button the second one. */
export const EVICT_FORM = act(
  markup`<summary id="evict-now">Evict now</summary>`,
  markup`<form method="post" action="page/evict">
<p>This removes the paths that were used longest ago, never pinned ones.</p>
<label>Down to <input id="gib" name="gib" inputmode="decimal" size="6"> GiB</label>
<span class="quiet">empty: as far as the limit</span>
<button id="evict">Evict</button></form>`,
);

/** Pins any stored path. */
export const PIN_FORM = act(
  markup`<summary id="pin-path">Pin a stored path</summary>`,
  markup`<form method="post" action="page/pin"><label for="path">Store path</label>
<input id="path" name="path" required size="40" spellcheck="false">
<button id="pin">Pin</button></form>`,
);

/** Pins the path that a search has found. */
export function pinForm(root: string, name: string): Html {
  return act(
    markup`<summary>Pin</summary>`,
    markup`<form method="post" action="page/pin"><input type="hidden" name="path" value="${root}">
<button aria-label="Keep it and its closure: ${name}">Keep it and its closure</button></form>`,
  );
}

export interface UnpinForm {
  readonly root: string;
  readonly name: string | null;
  /** The part of the page with this form: both may list the same root. */
  readonly section: "pins" | "packages";
}

export function unpinForm({ root, name, section }: UnpinForm): Html {
  return act(
    markup`<summary id="${section}-unpin-${root}">Unpin</summary>`,
    markup`<form method="post" action="page/unpin"><button name="path" value="${root}${
      name !== null && `-${name}`
    }"
 aria-label="End this protection of ${name ?? root}">End this protection</button></form>`,
  );
}

function act(summary: Part, form: Part): Html {
  return markup`<details class="act">${summary}
${form}</details>`;
}
