import type { ClientRequest } from "../message/client_request.ts";
import { isOfThisMachine } from "../message/peer.ts";
import type { Route } from "../routes/router.ts";
import { isChangeByBrowser, isOfSameOrigin, isReadByBrowser } from "./browser.ts";
import { OwnNames } from "./own_names.ts";

export interface AccessSettings {
  /** Names of this cache, without ports. */
  readonly ownNames: readonly string[];
  /** Whether clients reach it by HTTPS without a proxy. */
  readonly usesTls: boolean;
}

/** Why a request is refused, for the log. */
export interface AccessRefusal {
  readonly reason: string;
  readonly hint: string;
}

interface AccessRule extends AccessRefusal {
  isAbout(request: ClientRequest, route: Route): boolean;
  isKept(request: ClientRequest): boolean;
}

const CHANGING_METHODS: ReadonlySet<string> = new Set(["POST", "PUT", "DELETE"]);

/** With these a proxy says that somebody else has asked. */
const FORWARDED_FIELDS = [
  ...["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"],
  ...["x-forwarded-server", "x-real-ip"],
];

/** Who gets an answer. What breaks one of the rules is 403, and changes nothing. */
export class AccessRules {
  readonly #rules: readonly AccessRule[];

  constructor(settings: AccessSettings) {
    this.#rules = rulesOf(settings);
  }

  /** The first rule that the request breaks. */
  refusal(request: ClientRequest, route: Route): AccessRefusal | undefined {
    if (route.audience === undefined && !isChange(request)) return undefined;
    return this.#rules.find((rule) => rule.isAbout(request, route) && !rule.isKept(request));
  }
}

/** Programs send no header of a browser: the first two are not about them. */
function rulesOf({ ownNames, usesTls }: AccessSettings): readonly AccessRule[] {
  const names = new OwnNames(ownNames);
  return [
    {
      reason: "a page of another origin",
      hint: "behind a proxy, let it pass on the Host that the browser asked for",
      isAbout: (request) => isChange(request) && isChangeByBrowser(request),
      isKept: (request) => isOfSameOrigin(request, usesTls),
    },
    {
      reason: "a host that is not this cache's",
      hint: "if it is a name of this cache, give it with --server-allowed-hosts",
      isAbout: (request, { audience }) =>
        isChange(request)
          ? isChangeByBrowser(request)
          : audience === "own-names" && isReadByBrowser(request),
      isKept: ({ headers }) => names.has(headers.get("host")),
    },
    {
      reason: "not from this machine",
      hint: "ask on the machine that larder runs on, by a loopback address or its Unix socket",
      isAbout: (_, { audience }) => audience === "operator",
      isKept: isByOperator,
    },
  ];
}

function isChange({ method }: ClientRequest): boolean {
  return CHANGING_METHODS.has(method);
}

/** The one place that says who may do what only an operator may. */
function isByOperator({ peer, headers }: ClientRequest): boolean {
  return isOfThisMachine(peer) && FORWARDED_FIELDS.every((name) => headers.get(name) === null);
}
