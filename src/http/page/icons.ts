import { type Html, markup } from "./markup.ts";

/** The state of a thing. Each has a shape of its own, for those who cannot tell colours apart. */
export type Tone = "good" | "fair" | "bad" | "idle";

const SHAPES: Readonly<Record<Tone, Html>> = {
  good: markup`<circle cx="8" cy="8" r="7"/><path d="M4.8 8.2l2.2 2.2 4.2-4.6"/>`,
  fair: markup`<path d="M8 1.6 15 14.2H1Z"/><path d="M8 6.4v3.6M8 12v.1"/>`,
  bad: markup`<rect x="1.4" y="1.4" width="13.2" height="13.2" rx="2"/><path
 d="m5.3 5.3 5.4 5.4m0-5.4-5.4 5.4"/>`,
  idle: markup`<circle cx="8" cy="8" r="6.2"/>`,
};

/** A shape beside a word that says the same. */
export function toneIcon(tone: Tone): Html {
  return markup`<svg class="tone ${tone}" viewBox="0 0 16 16" aria-hidden="true">${
    SHAPES[tone]
  }</svg>`;
}
