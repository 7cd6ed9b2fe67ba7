import type { Facts } from "../../base/failure.ts";
import type { Answer } from "../message/answer.ts";
import type { ClientRequest } from "../message/client_request.ts";

/** A request that has found its route. */
export interface Routed {
  readonly request: ClientRequest;
  readonly requestId: string;
  /** True for HEAD: the answer is that of GET without its body. */
  readonly head: boolean;
  /** What the groups of the route's pattern matched. */
  readonly params: readonly string[];
}

export type Handler = (routed: Routed) => Answer | Promise<Answer>;

export interface Route {
  /** Names the route in metrics and logs, such as `/{hash}.narinfo`. */
  readonly name: string;
  /** An exact path, or a pattern over the whole path. */
  readonly path: string | RegExp;
  /** By method; a GET serves HEAD too. */
  readonly methods: Readonly<Partial<Record<"GET" | "POST" | "PUT" | "DELETE", Handler>>>;
  /**
   * Who is answered: a browser only under a name of this cache, or only who works on its machine.
   * Default: everybody. `access/access_rules.ts` says what it means.
   */
  readonly audience?: "own-names" | "operator";
  /** True where what is served, or absent, says in X-Cache where it came from. */
  readonly cached?: true;
  /** True where bodies go out piece by piece, so that one may end early. */
  readonly inPieces?: true;
  /** What a line of the log says of a path beside what all lines say; never rejects. */
  readonly describe?: (path: string) => Facts | Promise<Facts>;
  /** True where bodies are large: they are followed to their last byte, and may be ranges. */
  readonly streams?: true;
}

export type Match =
  | {
    readonly kind: "route";
    readonly route: Route;
    readonly handler: Handler;
    readonly params: readonly string[];
  }
  | { readonly kind: "method"; readonly route: Route; readonly allow: string }
  | { readonly kind: "none" };

/** Finds the route of a method and a path; of two patterns that match, the first one. */
export class Router {
  readonly #exact: ReadonlyMap<string, Route>;
  readonly #patterns: readonly (Route & { readonly path: RegExp })[];

  constructor(routes: readonly Route[]) {
    const isExact = (route: Route) => typeof route.path === "string";
    this.#exact = new Map(
      routes.filter(isExact).map((route) => [String(route.path), route] as const),
    );
    this.#patterns = routes.filter((route): route is Route & { path: RegExp } => !isExact(route));
  }

  match(method: string, path: string): Match {
    const exact = this.#exact.get(path);
    if (exact !== undefined) return matchMethod(exact, method, []);
    for (const route of this.#patterns) {
      const found = route.path.exec(path);
      if (found !== null) return matchMethod(route, method, found.slice(1));
    }
    return { kind: "none" };
  }
}

function matchMethod(route: Route, method: string, params: readonly string[]): Match {
  const key = method === "HEAD" ? "GET" : method;
  const handler = Object.hasOwn(route.methods, key)
    ? route.methods[key as keyof Route["methods"]]
    : undefined;
  if (handler !== undefined) return { kind: "route", route, handler, params };
  const allow = Object.keys(route.methods)
    .flatMap((name) => name === "GET" ? ["GET", "HEAD"] : [name])
    .join(", ");
  return { kind: "method", route, allow };
}
