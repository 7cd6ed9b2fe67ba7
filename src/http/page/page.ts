import { createHash } from "node:crypto";
import type { Stats } from "../stats/stats.ts";
import { escapeHtml, renderParts } from "./render.js";

/** The source files of the page. */
export interface PageSource {
  /** HTML with placeholders such as `{{ name }}`. */
  readonly template: string;
  readonly style: string;
  readonly script: string;
}

export interface PageFacts {
  /** The URL that the client used. */
  readonly url: string;
  /** The keys for the client's `trusted-public-keys`. */
  readonly publicKeys: readonly string[];
  readonly stats: Stats;
}

/** The page for people: one document without any request but `stats`. */
export class Page {
  /** Headers that forbid the browser everything else. */
  readonly headers: Readonly<Record<string, string>>;
  readonly #source: PageSource;

  constructor(source: PageSource) {
    this.#source = source;
    const policy = [
      "default-src 'none'",
      `script-src '${hashOf(source.script)}'`,
      `style-src '${hashOf(source.style)}'`,
      "connect-src 'self'",
      "img-src data:",
      "base-uri 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
    ];
    this.headers = {
      "content-security-policy": policy.join("; "),
      // With "no-referrer", a browser sends the page's own forms with `Origin: null`.
      "referrer-policy": "same-origin",
    };
  }

  /** The document. Escapes all values, except HTML that the server rendered itself. */
  render({ url, publicKeys, stats }: PageFacts): string {
    const { template, style, script } = this.#source;
    const values: Readonly<Record<string, string>> = {
      style: `<style>${style}</style>`,
      script: `<script type="module">${script}</script>`,
      settings: escapeHtml(nixSettings(url, publicKeys)),
      ...renderParts(stats),
    };
    return template.replace(/\{\{ (\w+) \}\}/g, (_, name) => {
      const value = values[name];
      if (value === undefined) throw new Error(`Cannot render the page: no value for ${name}`);
      return value;
    });
  }
}

/** The lines for a client's `nix.conf`, which extend its settings. */
function nixSettings(url: string, publicKeys: readonly string[]): string {
  const lines = [`extra-substituters = ${url}`];
  if (publicKeys.length > 0) lines.push(`extra-trusted-public-keys = ${publicKeys.join(" ")}`);
  return `${lines.join("\n")}\n`;
}

/** The hash of an inline text, in the form of a Content-Security-Policy. */
function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
