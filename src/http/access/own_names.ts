import { lowerAscii } from "../message/field_words.ts";
import { parseHost } from "../message/host.ts";

/** The host names of this cache for browsers. Any IP address and `localhost` are included. */
export class OwnNames {
  readonly #names: ReadonlySet<string>;

  constructor(names: readonly string[]) {
    this.#names = new Set(["localhost", ...names].map((name) => withoutDot(lowerAscii(name))));
  }

  /**
   * True when a `Host` field names this cache. An attacker can point a name of theirs at this
   * server (DNS rebinding), but no IP address and no other name.
   */
  has(host: string | null): boolean {
    const parsed = host === null ? undefined : parseHost(host);
    if (parsed === undefined) return false;
    return parsed.isAddress || this.#names.has(withoutDot(parsed.name));
  }
}

/** The name without the dot of its fully qualified form: `cache.example.` is `cache.example`. */
function withoutDot(name: string): string {
  return name.endsWith(".") ? name.slice(0, -1) : name;
}
