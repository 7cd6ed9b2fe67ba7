import type { Facts } from "../../base/failure.ts";
import type { Answer, Caller, ClientRequest } from "../message/message.ts";

/** A request with its route. */
export interface Routed {
  readonly request: ClientRequest;
  readonly requestId: string;
  /** True for HEAD: the answer is GET's without its body. */
  readonly head: boolean;
  /** The matched groups of the route's pattern. */
  readonly params: readonly string[];
  /** The holder of the token, if the request needs one. */
  readonly caller: Caller | undefined;
  /** Finds out if the client may also pin and unpin. A wrong token takes its time. */
  mayManage(): Promise<boolean>;
}

export type Handler = (routed: Routed) => Answer | Promise<Answer>;

/** Paths with one name between two fixed texts. The name has no "/", and may be empty. */
export interface OneNamePath {
  readonly before: string;
  readonly behind: string;
}

export interface Route {
  /** Label of the route in metrics and logs, such as `/{hash}.narinfo`. */
  readonly name: string;
  /** An exact path, or a pattern over the whole path. */
  readonly path: string | RegExp | OneNamePath;
  /** Handlers by method; GET serves HEAD, too. */
  readonly methods: Readonly<Partial<Record<"GET" | "POST" | "PUT" | "DELETE", Handler>>>;
  /**
   * The parameters of the queries of larder's own routes. Another one, or one twice, is 400 with a
   * sentence. The routes of the binary cache protocol ignore what they do not know.
   */
  readonly query?: Readonly<Record<string, readonly string[]>>;
  /**
   * Limits browsers to the names of this cache. The right that a route needs is a row in
   * `access/permissions.ts`.
   */
  readonly audience?: "own-names";
  /** True if a token of a lesser role gets 401: a browser then asks for another one. */
  readonly asksForToken?: true;
  /** Set for routes whose requests are those of a client's pull. */
  readonly ofPath?: "narinfo" | "nar";
  /** True for routes with an X-Cache header. */
  readonly cached?: true;
  /** True for streamed bodies, which may end early. */
  readonly inPieces?: true;
  /** Facts about a path for its log line; never rejects. */
  readonly describe?: (path: string) => Facts | Promise<Facts>;
  /** True for large bodies, followed to their last byte and open to ranges. */
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
  /** `near`: larder's own routes with the same first segment. */
  | { readonly kind: "none"; readonly near: readonly string[] };

/** Finds the route of a method and a path. The first matching pattern wins. */
export class Router {
  readonly #exact: ReadonlyMap<string, Route>;
  /** Most requests have such a path: finding it costs less than the other two. */
  readonly #named: readonly (readonly [path: OneNamePath, route: Route])[];
  readonly #patterns: readonly (readonly [path: RegExp, route: Route])[];

  /** Throws for an exact path that a named one takes. */
  constructor(routes: readonly Route[]) {
    const exact = new Map<string, Route>();
    const named: (readonly [OneNamePath, Route])[] = [];
    const patterns: (readonly [RegExp, Route])[] = [];
    for (const route of routes) {
      const { path } = route;
      if (typeof path === "string") exact.set(path, route);
      else if (path instanceof RegExp) patterns.push([path, route]);
      else named.push([path, route]);
    }
    this.#exact = exact;
    this.#named = named;
    this.#patterns = patterns;
    for (const path of exact.keys()) {
      const taken = named.find(([one]) => nameIn(one, path) !== undefined);
      if (taken !== undefined) throw new Error(`Cannot route ${path}: ${taken[1].name} takes it`);
    }
  }

  match(method: string, path: string): Match {
    for (const [named, route] of this.#named) {
      const name = nameIn(named, path);
      if (name !== undefined) return matchMethod(route, method, [name]);
    }
    const exact = this.#exact.get(path);
    if (exact !== undefined) return matchMethod(exact, method, []);
    for (const [pattern, route] of this.#patterns) {
      const found = pattern.exec(path);
      if (found !== null) return matchMethod(route, method, found.slice(1));
    }
    return { kind: "none", near: this.#near(path) };
  }

  #near(path: string): readonly string[] {
    const segment = firstSegment(path);
    const patterns = this.#patterns.map(([, route]) => route);
    return [...this.#exact.values(), ...patterns]
      .filter(({ name, query }) => query !== undefined && firstSegment(name) === segment)
      .map(({ name }) => name);
  }
}

function firstSegment(path: string): string | undefined {
  return path.split("/", 2)[1] || undefined;
}

function nameIn({ before, behind }: OneNamePath, path: string): string | undefined {
  const isOne = path.length >= before.length + behind.length && path.startsWith(before) &&
    path.endsWith(behind);
  if (!isOne) return undefined;
  const name = path.slice(before.length, path.length - behind.length);
  return name.includes("/") ? undefined : name;
}

function handlerOf({ methods }: Route, method: string): Handler | undefined {
  switch (method) {
    case "GET":
    case "HEAD":
      return methods.GET;
    case "POST":
    case "PUT":
    case "DELETE":
      return methods[method];
    default:
      return undefined;
  }
}

function matchMethod(route: Route, method: string, params: readonly string[]): Match {
  const handler = handlerOf(route, method);
  if (handler !== undefined) return { kind: "route", route, handler, params };
  const allow = Object.keys(route.methods)
    .flatMap((name) => name === "GET" ? ["GET", "HEAD"] : [name])
    .join(", ");
  return { kind: "method", route, allow };
}
