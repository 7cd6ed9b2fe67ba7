import type { ClientRequest } from "../message/client_request.ts";
import { isOfThisMachine } from "../message/peer.ts";
import type { Route } from "../routes/router.ts";
import { isChangeByBrowser, isOfSameOrigin, isReadByBrowser } from "./browser.ts";
import { OwnNames } from "./own_names.ts";

export interface AccessSettings {
  /** Names of this cache, without ports. */
  readonly ownNames: readonly string[];
  /** True if clients reach it by HTTPS without a proxy. */
  readonly usesTls: boolean;
}

/** The reason for a 403, for the log. */
export interface AccessRefusal {
  readonly reason: string;
  readonly hint: string;
}

interface AccessRule extends AccessRefusal {
  concerns(request: ClientRequest, route: Route): boolean;
  allows(request: ClientRequest): boolean;
}

const CHANGING_METHODS: ReadonlySet<string> = new Set(["POST", "PUT", "DELETE"]);

/** Headers of a proxy: the client behind it is not the peer. */
const FORWARDED_FIELDS = [
  ...["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"],
  ...["x-forwarded-server", "x-real-ip"],
];

/** The access rules. A request that breaks one gets 403, and changes nothing. */
export class AccessRules {
  readonly #rules: readonly AccessRule[];

  constructor(settings: AccessSettings) {
    this.#rules = rulesOf(settings);
  }

  /** The first rule that the request breaks. */
  refusal(request: ClientRequest, route: Route): AccessRefusal | undefined {
    if (route.audience === undefined && !isChange(request)) return undefined;
    return this.#rules.find((rule) => rule.concerns(request, route) && !rule.allows(request));
  }
}

/** The rules for one server. The first two need a browser's headers, which programs never send. */
function rulesOf({ ownNames, usesTls }: AccessSettings): readonly AccessRule[] {
  const names = new OwnNames(ownNames);
  return [
    {
      reason: "cross-origin page",
      hint: "let the proxy in front forward the Host header of the browser",
      concerns: (request) => isChange(request) && isChangeByBrowser(request),
      allows: (request) => isOfSameOrigin(request, usesTls),
    },
    {
      reason: "unknown host",
      hint: "add the host with --server-allowed-hosts if it names this cache",
      concerns: (request, { audience }) =>
        isChange(request)
          ? isChangeByBrowser(request)
          : audience === "own-names" && isReadByBrowser(request),
      allows: ({ headers }) => names.has(headers.get("host")),
    },
    {
      reason: "not a local operator",
      hint: "send the request from this machine, to a loopback address or the Unix socket",
      concerns: (_, { audience }) => audience === "operator",
      allows: isByOperator,
    },
  ];
}

function isChange({ method }: ClientRequest): boolean {
  return CHANGING_METHODS.has(method);
}

/** The only definition of an operator. */
function isByOperator({ peer, headers }: ClientRequest): boolean {
  return isOfThisMachine(peer) && FORWARDED_FIELDS.every((name) => headers.get(name) === null);
}
