import type { RequestHeaders } from "../../base/request_headers.ts";
import {
  type Caller,
  CHANGING_METHODS,
  type ClientRequest,
  DEFAULT_PORTS,
  includes,
  isOfThisMachine,
  lowerAscii,
  parseHost,
  type Role,
  TOKEN_OPTION,
} from "../message/message.ts";
import type { Route } from "../routes/router.ts";
import type { OwnNames } from "./own_names.ts";
import { type Need, needFor, needOf, type RouteMethod } from "./permissions.ts";
import { type Token, Tokens } from "./tokens.ts";

export interface AccessSettings {
  readonly ownNames: OwnNames;
  /** True if clients reach it by HTTPS without a proxy. */
  readonly usesTls: boolean;
  readonly tokens: readonly Token[];
}

/** A refusal, with its reason and a hint for the log. */
export interface AccessRefusal {
  /** 401: without a valid token. 403: whatever token the client sends. */
  readonly status: 401 | 403;
  readonly reason: string;
  readonly hint: string;
  /** The role that the request needs. */
  readonly role?: Role;
  /** The role that the caller's token lacks. */
  readonly missing?: Role | undefined;
  /** The holder of a token of a lesser role. */
  readonly caller?: Caller;
}

/** The decision on a request. */
export type Access =
  /** `caller` is set if the request needs a token. */
  | { readonly kind: "allowed"; readonly caller: Caller | undefined }
  | { readonly kind: "refused"; readonly refusal: AccessRefusal };

interface AccessRule extends Pick<AccessRefusal, "reason" | "hint"> {
  concerns(request: ClientRequest, route: Route): boolean;
  allows(request: ClientRequest): boolean;
}

/** The reason of a browser's refusal for whom the answer is a page. */
export const UNKNOWN_HOST = "unknown host";

/** Headers of a proxy: the client behind it is not the peer. */
const FORWARDED_FIELDS = [
  ...["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"],
  ...["x-forwarded-server", "x-real-ip"],
];

const ALLOWED: Access = { kind: "allowed", caller: undefined };

const NOT_AN_OPERATOR: AccessRefusal = {
  status: 403,
  reason: "not a local operator",
  hint: "send the request from this machine, to a loopback address or the Unix socket, or set " +
    TOKEN_OPTION.admin,
};

/** A browser asks for another token on 401 alone. */
const ASKED = { status: 401, missing: undefined } as const;

const UNSIGNED: AccessRefusal = {
  status: 403,
  reason: "document without a signature",
  hint: `set ${TOKEN_OPTION.write}, and send a token of it: no key vouches for a document`,
};

/** The access rules. A refused request changes nothing. */
export class AccessRules {
  readonly #browserRules: readonly AccessRule[];
  readonly #tokens: Tokens;
  readonly #needs: ReadonlyMap<Route, ReadonlyMap<string, Need>>;
  readonly #needToManage: Need;

  /** Throws for a route without permissions. */
  constructor(settings: AccessSettings, routes: readonly Route[]) {
    this.#browserRules = browserRules(settings);
    this.#tokens = new Tokens(settings.tokens);
    const { roles } = this.#tokens;
    this.#needs = new Map(routes.map((route) => {
      const methods = Object.keys(route.methods) as RouteMethod[];
      return [route, new Map(methods.map((one) => [one, needOf(route.name, one, roles)]))];
    }));
    this.#needToManage = needFor("manage", roles);
  }

  decide(request: ClientRequest, route: Route): Access {
    const broken = route.audience === undefined && !isChange(request)
      ? undefined
      : this.#browserRules.find((rule) => rule.concerns(request, route) && !rule.allows(request));
    if (broken !== undefined) return refused({ status: 403, ...broken });
    const method = request.method === "HEAD" ? "GET" : request.method;
    const access = this.#meet(request, this.#needs.get(route)?.get(method) ?? "operator");
    const isLesser = access.kind === "refused" && access.refusal.missing !== undefined;
    return isLesser && route.asksForToken ? refused({ ...access.refusal, ...ASKED }) : access;
  }

  /** Decides if the sender of an allowed request may also pin and unpin. */
  decideToManage(request: ClientRequest): Access {
    return this.#meet(request, this.#needToManage);
  }

  /** Finds out who sends an upload, wherever to. */
  decideToUpload(request: ClientRequest): Access {
    return this.#judge(request, "write");
  }

  #meet(request: ClientRequest, need: Need): Access {
    if (need === "nothing") return ALLOWED;
    if (need === "refused") return refused(UNSIGNED);
    if (need !== "operator") return this.#judge(request, need.role);
    return isByOperator(request) ? ALLOWED : refused(NOT_AN_OPERATOR);
  }

  #judge({ headers }: ClientRequest, role: Role): Access {
    const authorization = headers.get("authorization");
    const option = TOKEN_OPTION[role];
    const hint = this.#tokens.roles.has(role)
      ? `send a token of ${option}`
      : `set ${option}, and send a token of it`;
    if (authorization === null) return refused({ status: 401, reason: "no token", role, hint });
    const caller = this.#tokens.callerOf(authorization);
    if (caller === undefined) return refused({ status: 401, reason: "wrong token", role, hint });
    if (includes(caller.role, role)) return { kind: "allowed", caller };
    return refused({ status: 403, reason: "role missing", role, hint, missing: role, caller });
  }
}

/** The rules on browsers. They need a browser's headers, which programs never send. */
function browserRules(
  { ownNames, usesTls }: Pick<AccessSettings, "ownNames" | "usesTls">,
): readonly AccessRule[] {
  return [
    {
      reason: "cross-origin page",
      hint: "let the proxy in front forward the Host header of the browser",
      concerns: (request) => isChange(request) && isChangeByBrowser(request),
      allows: (request) => isOfSameOrigin(request, usesTls),
    },
    {
      reason: UNKNOWN_HOST,
      hint: "add the host with --server-allowed-hosts if it names this cache",
      concerns: (request, { audience }) =>
        isChange(request)
          ? isChangeByBrowser(request)
          : audience === "own-names" && isReadByBrowser(request),
      allows: ({ headers }) => ownNames.has(headers.get("host")),
    },
  ];
}

function refused(refusal: AccessRefusal): Access {
  return { kind: "refused", refusal };
}

function isChange({ method }: ClientRequest): boolean {
  return CHANGING_METHODS.has(method);
}

/** The only definition of an operator. */
function isByOperator({ peer, viaProxy, headers }: ClientRequest): boolean {
  return isOfThisMachine(peer) && !viaProxy &&
    FORWARDED_FIELDS.every((name) => headers.get(name) === null);
}

/** Headers that browsers set on every change, and that no page can set or remove. */
const CHANGE_SIGNS = ["origin", "sec-fetch-site"];

/**
 * Headers of a browser's reads. Over plain HTTP it sends no `Sec-Fetch-*`, and no `Origin` with a
 * GET.
 */
const READ_SIGNS = [
  ...[...CHANGE_SIGNS, "sec-fetch-mode", "sec-fetch-dest", "sec-fetch-user", "referer"],
  "upgrade-insecure-requests",
];

/** Every browser's User-Agent since 1998 begins so. */
const BROWSER_AGENT = "Mozilla/";

/** True when a browser sent this changing request. */
export function isChangeByBrowser({ headers }: BrowserSigns): boolean {
  return CHANGE_SIGNS.some((name) => headers.get(name) !== null);
}

/** True when a browser probably sent this reading request. */
export function isReadByBrowser({ headers }: BrowserSigns): boolean {
  if (READ_SIGNS.some((name) => headers.get(name) !== null)) return true;
  // Programs that send the header at all accept any language.
  if ((headers.get("accept-language") ?? "*") !== "*") return true;
  return headers.get("user-agent")?.startsWith(BROWSER_AGENT) ?? false;
}

/** True when a page of this cache sent it, or the user without any page. */
export function isOfSameOrigin({ headers }: BrowserSigns, usesTls: boolean): boolean {
  const site = headers.get("sec-fetch-site") ?? "same-origin";
  if (site !== "same-origin" && site !== "none") return false;
  const origin = headers.get("origin");
  return origin === null || isOriginOf(origin, headers.get("host"), usesTls);
}

interface BrowserSigns {
  readonly headers: RequestHeaders;
}

/**
 * True when the origin is this server. Behind a proxy both schemes count, as the proxy may speak
 * TLS.
 */
function isOriginOf(origin: string, host: string | null, usesTls: boolean): boolean {
  const [, scheme, place] = /^(https?):\/\/(.+)$/.exec(lowerAscii(origin)) ?? [];
  if (scheme !== "https" && (scheme !== "http" || usesTls)) return false;
  const one = parseHost(place ?? "");
  const other = parseHost(host ?? "");
  if (one === undefined || other === undefined) return false;
  const defaultPort = DEFAULT_PORTS[scheme];
  return one.name === other.name && (one.port ?? defaultPort) === (other.port ?? defaultPort);
}
