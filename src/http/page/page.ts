import { createHash } from "node:crypto";
import type { Stats } from "../stats/stats.ts";
import { escapeHtml, renderParts } from "./render.js";

/** The texts that the page is made of. */
export interface PageSource {
  /** HTML with `{{ name }}` where something is put in. */
  readonly template: string;
  readonly style: string;
  readonly script: string;
}

export interface PageFacts {
  /** Of this cache, as the client reached it. */
  readonly url: string;
  /** What a client has to trust. */
  readonly publicKeys: readonly string[];
  readonly stats: Stats;
}

/** The page for people: one document that asks for nothing but `stats` beside it. */
export class Page {
  /** What the browser may do with it: nothing else, not even by mistake. */
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
      "form-action 'none'",
      "frame-ancestors 'none'",
    ];
    this.headers = {
      "content-security-policy": policy.join("; "),
      "referrer-policy": "no-referrer",
    };
  }

  /** The document. Whatever is put in is escaped, or was by whoever rendered it. */
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

/** The lines for a client's `nix.conf`; they add to what it has. */
function nixSettings(url: string, publicKeys: readonly string[]): string {
  const lines = [`extra-substituters = ${url}`];
  if (publicKeys.length > 0) lines.push(`extra-trusted-public-keys = ${publicKeys.join(" ")}`);
  return `${lines.join("\n")}\n`;
}

/** As a Content-Security-Policy names an inline text. */
function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
