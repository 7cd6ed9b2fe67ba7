import { STATUS_CODES } from "node:http";
import { type CertificateInputs, systemCertificates } from "../../app/system_certificates.ts";
import { COMMAND_HEADER } from "../../base/command_request.ts";
import { boundedText } from "../../base/bounded_text.ts";
import { DATABASE_AWAY, Failure, reasonOf, STORAGE_AWAY } from "../../base/failure.ts";
import { type Role, ROLES } from "../../http/message/message.ts";
import { clock } from "../../runtime/current.ts";
import { type ClientSettings, serverAddress } from "./client_flags.ts";
import { describe, PERMISSIONS } from "../../http/access/permissions.ts";

/** The server did not answer, so all further requests fail, too. */
export class Unreachable extends Failure {
  constructor(message: string, cause?: unknown) {
    super("upstream-down", message, {}, cause);
  }
}

/** The server answered with another status than 200. The message is a hint for the user. */
export class ServerRefusal extends Failure {
  readonly status: number;
  /** The role that the token lacks. */
  readonly missing: Role | undefined;

  constructor(status: number, message: string, missing?: Role) {
    super("denied", message);
    this.status = status;
    this.missing = missing;
  }
}

export interface RequestOptions {
  /** Time limit for the response's headers. */
  readonly limitMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Follows redirects of a GET to another server. The token stays here. */
  readonly redirect?: "follow";
}

/** Upstream timeouts and retries may delay an answer so long. */
const ANSWER_LIMIT_MS = 60_000;

/** The one line of an answer that refuses. */
const LINE_BYTES_MAX = 1_000;
const LINE_LIMIT_MS = 5_000;

const TRUST_HINT = "set NIX_SSL_CERT_FILE or SSL_CERT_FILE to the certificate of its authority";
const START_HINT = 'is larder running? Start it with "larder serve", or give --server';

/** larder's own form of a request id: the client shows no other. */
const REQUEST_ID_REGEXP = /^[A-Za-z0-9._-]{1,64}$/;

/** The environment and the files of a command. */
export interface ServerTrust extends Pick<CertificateInputs, "env"> {
  readonly namedFiles: Pick<CertificateInputs, "readTextFile">;
}

/** A client of a running larder. The token goes into a header and nowhere else. */
export class ServerClient implements Disposable {
  readonly #settings: ClientSettings;
  readonly #base: string;
  readonly #trust: CertificateInputs | undefined;
  /** Made for the first request: it reads files. */
  #http: Promise<Deno.HttpClient | undefined> | undefined;

  /** `trust`: the inputs for finding the certificates that verify an HTTPS server. */
  constructor(settings: ClientSettings, trust?: ServerTrust) {
    const { server } = settings;
    this.#settings = settings;
    this.#base = server.kind === "http" ? server.url : "http://127.0.0.1";
    this.#trust = trust && { env: trust.env, ...trust.namedFiles };
  }

  /**
   * Resolves with a response of status 200, once its headers are there. Throws Unreachable, a
   * Failure "away" for a larder without its database, or ServerRefusal for any other status.
   */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
    const response = await this.#send(method, path, options);
    if (response.status === 200) return response;
    const lost = response.status === 503 ? await lossOf(response) : undefined;
    if (lost !== undefined) throw new Failure("away", `${lost}; try again in a moment`);
    if (!response.bodyUsed) await response.body?.cancel();
    const missing = missingRole(response.headers.get("www-authenticate"));
    throw new ServerRefusal(response.status, this.#refusal(response, { method, path }), missing);
  }

  [Symbol.dispose](): void {
    void this.#http?.then((http) => http?.close(), () => undefined);
  }

  async #send(method: string, path: string, options: RequestOptions): Promise<Response> {
    const { limitMs = ANSWER_LIMIT_MS, headers = {}, body, redirect = "manual" } = options;
    const { token } = this.#settings;
    const http = await (this.#http ??= this.#connecting());
    const late = new AbortController();
    const timer = clock.after(limitMs, () => late.abort());
    try {
      return await fetch(`${this.#base}${path}`, {
        method,
        ...body === undefined ? {} : { body },
        headers: {
          ...headers,
          [COMMAND_HEADER]: "1",
          ...token === undefined ? {} : { authorization: `Bearer ${token}` },
        },
        // A redirect would turn a POST into a GET, and could leak the token.
        redirect,
        signal: late.signal,
        ...(http && { client: http }),
      });
    } catch (error) {
      const shown = serverAddress.print(this.#settings.server);
      const why = late.signal.aborted
        ? `no answer in ${limitMs / 1_000} s; ${START_HINT}`
        : unreachableReason(error);
      throw new Unreachable(`Cannot reach ${shown}: ${why}`, error);
    } finally {
      timer.cancel();
    }
  }

  async #connecting(): Promise<Deno.HttpClient | undefined> {
    const { server } = this.#settings;
    if (server.kind === "unix") return socketClient(server.path);
    if (this.#trust === undefined || !server.url.startsWith("https:")) return undefined;
    return trustingClient(await systemCertificates(this.#trust));
  }

  #refusal(
    { status, headers }: Response,
    request: Pick<RefusedByToken, "method" | "path">,
  ): string {
    const phrase = `${status} ${STATUS_CODES[status] ?? ""}`.trimEnd();
    if (status === 401 || status === 403) {
      const challenge = headers.get("www-authenticate");
      const hasToken = this.#settings.token !== undefined;
      return tokenAdvice({ ...request, status, challenge, hasToken });
    }
    if (status === 404) {
      return `the server does not have this (${phrase}): is it larder, and as new as this one?`;
    }
    if (status === 405) {
      return `the server does not allow this (${phrase}): see its options, and its version`;
    }
    if (status >= 300 && status < 400) {
      return `the server points elsewhere (${phrase}): give its own address with --server`;
    }
    const requestId = headers.get("x-request-id") ?? "";
    const trace = REQUEST_ID_REGEXP.test(requestId) ? `, request id ${requestId}` : "";
    return `the server answered ${phrase}: its log says why${trace}`;
  }
}

/** The part that is away. Other text reaches no terminal: any program may listen at the address. */
async function lossOf(response: Response): Promise<string | undefined> {
  const text = await boundedText(response, { bytesMax: LINE_BYTES_MAX, limitMs: LINE_LIMIT_MS })
    .catch(() => "");
  return [DATABASE_AWAY, STORAGE_AWAY].find((sentence) => text === `${sentence}\n`);
}

function socketClient(path: string): Deno.HttpClient {
  try {
    return Deno.createHttpClient({ proxy: { transport: "unix", path } });
  } catch (error) {
    throw new Unreachable(`Cannot reach unix:${path}: ${reasonOf(error)}`, error);
  }
}

function trustingClient(caCertificates: readonly string[]): Deno.HttpClient {
  try {
    return Deno.createHttpClient({ caCerts: [...caCertificates] });
  } catch (error) {
    throw new Failure("broken", `Cannot use certificates: ${reasonOf(error)}; ${TRUST_HINT}`);
  }
}

/**
 * Errors of the wrong scheme: a TLS server answers HTTP with an alert, a plain one answers TLS with
 * text.
 */
const WRONG_SCHEMES: readonly (readonly [RegExp, string])[] = [
  [/invalid http version/i, "it does not speak plain HTTP; give --server https://"],
  [/corrupt message of type/i, "it does not speak HTTPS; give --server http://"],
];

const AUTHORITY_AS_SERVER = "its certificate is an authority's, which cannot be a server's own; " +
  "give the server a certificate that is not CA:TRUE";

/** The reason, with a hint. A server that speaks the wrong scheme is at least running. */
function unreachableReason(error: unknown): string {
  const reason = reasonOf(error);
  const otherScheme = WRONG_SCHEMES.find(([sign]) => sign.test(reason))?.[1];
  if (otherScheme !== undefined) return otherScheme;
  const certificate = /invalid peer certificate: (.*)$/s.exec(reason)?.[1];
  if (certificate === undefined) return `${lastReason(error)}; ${START_HINT}`;
  if (/CaUsedAsEndEntity/.test(certificate)) return AUTHORITY_AS_SERVER;
  return certificate === "UnknownIssuer"
    ? `its certificate is of an authority that is not trusted here; ${TRUST_HINT}`
    : `its certificate is not accepted (${certificate}); give --server the name that it is for`;
}

/**
 * The last part of "error sending request for url (…): client error (Connect): … Connection
 * refused".
 */
function lastReason(error: unknown): string {
  return (reasonOf(error).split(": ").at(-1) ?? "").toLowerCase();
}

/** A request that the server refused with 401 or 403. */
interface RefusedByToken {
  readonly method: string;
  readonly path: string;
  readonly status: 401 | 403;
  /** The `WWW-Authenticate` header. */
  readonly challenge: string | null;
  readonly hasToken: boolean;
}

const WAYS = "--token-file PATH, or set LARDER_TOKEN";

/** One sentence on which token to set. */
function tokenAdvice(refused: RefusedByToken): string {
  const { status, challenge, hasToken } = refused;
  const phrase = `${status} ${STATUS_CODES[status]}`;
  const missing = missingRole(challenge);
  if (missing !== undefined) {
    return `this token lacks the role ${missing} (${phrase}): give ${
      tokenOf(missing)
    } with ${WAYS}`;
  }
  if (!hasToken) {
    return `the server wants ${tokenOf(neededRole(refused))} (${phrase}): give ${WAYS}`;
  }
  if (status === 403) return `the server does not accept this token (${phrase})`;
  const needed = tokenOf(neededRole(refused));
  return `the server does not know this token (${phrase}): give ${needed} with ${WAYS}`;
}

/** The role that a valid token lacks, by the server's `WWW-Authenticate`. */
function missingRole(challenge: string | null): Role | undefined {
  return ROLES.find((role) => challenge?.includes(`scope="${role}"`));
}

function neededRole({ method, path }: RefusedByToken): Role | undefined {
  const [bare = ""] = path.split("?");
  const row = PERMISSIONS.find((one) => one.method === method && patternOf(one.route).test(bare));
  return ROLES.find((role) => row && describe(row).role === role);
}

/** `/pin/{hash}.narinfo` → any path of that form. */
function patternOf(route: string): RegExp {
  const literal = route.split(/\{[^}]*\}/).map((text) => RegExp.escape(text));
  return new RegExp(`^${literal.join("[^/]*")}$`);
}

function tokenOf(role: Role | undefined): string {
  if (role === undefined) return "a token";
  return `${role === "admin" ? "an" : "a"} ${role} token`;
}
