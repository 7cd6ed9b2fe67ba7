import { lowerAscii } from "../message/field_words.ts";
import { parseHost } from "../message/host.ts";

/** The names under which a browser may reach this cache; any address and `localhost` are, too. */
export class OwnNames {
  readonly #names: ReadonlySet<string>;

  constructor(names: readonly string[]) {
    this.#names = new Set(["localhost", ...names].map((name) => withoutDot(lowerAscii(name))));
  }

  /**
   * Whether a `Host` field names this cache. Another site can make a name of its own lead here
   * (DNS rebinding), but neither an address nor a name that is somebody else's.
   */
  has(host: string | null): boolean {
    const parsed = host === null ? undefined : parseHost(host);
    if (parsed === undefined) return false;
    return parsed.isAddress || this.#names.has(withoutDot(parsed.name));
  }
}

/** `cache.example.` is `cache.example`, said in full. */
function withoutDot(name: string): string {
  return name.endsWith(".") ? name.slice(0, -1) : name;
}
