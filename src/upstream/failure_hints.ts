import { Failure, messageOf } from "../base/failure.ts";
import { KNOWN_CONTENT_ENCODINGS } from "../nix/content_encoding.ts";
import { UPSTREAM_SILENT } from "../telemetry/events.ts";
import { NoAnswer, type UpstreamFailure, type UpstreamReading } from "./upstream.ts";

type HintedFailure = Extract<UpstreamReading, { kind: "failed" }>;

/** A refusal of requests without credentials. */
const UNAUTHORIZED = 401;

/** Remedy for an upstream that takes connections, and answers too late. */
const UPSTREAM_SLOW = "check the upstream; if it is only slow, raise " +
  "--cache-upstream-body-idle-timeout (--cache-upstream-response-header-timeout only decides when " +
  "another upstream gets the request too)";

const HINTS: Readonly<Record<UpstreamFailure, string>> = {
  timeout: UPSTREAM_SLOW,
  unreachable: UPSTREAM_SILENT,
  status: "wait; if it lasts, tell the upstream's operators, or remove it",
  garbage: "check that --cache-upstream-url is the address of a binary cache",
  untrusted: "give its public key with --cache-upstream-public-key",
};

/** A signature is not of the key that the operator gave under its name. */
export function wrongKeyWords(name: string): string {
  return `the signature of key ${name} does not match the key given under that name`;
}

/** Remedy for narinfos with a signature that is not of the key given under its name. */
export function wrongKeyHint(wrongKey: string): string {
  return `compare --cache-upstream-public-key with the key ${wrongKey} that the upstream publishes: ` +
    "they differ";
}

/** Remedy for a server with the certificate of an authority. */
export const CA_AS_SERVER =
  "give the upstream a certificate with CA:FALSE in its basicConstraints: its own is an authority's";

/**
 * The operator's remedy for a failure: the same text in the log, the page and the verdict.
 * `hasCredentials`: the request had some.
 */
export function hintFor(
  { reason, detail, status, wrongKey }: Omit<HintedFailure, "kind">,
  hasCredentials: boolean,
): string {
  if (wrongKey !== undefined) return wrongKeyHint(wrongKey);
  // Of the TLS library: the upstream presents an authority's certificate as its own.
  if (/CaUsedAsEndEntity/.test(detail)) return CA_AS_SERVER;
  if (/certificate/i.test(detail)) {
    return "give the authority of its certificate with --cache-upstream-ca-file";
  }
  // Without a connection no other timeout helps.
  if (reason === "timeout" && /connecting took/.test(detail)) return UPSTREAM_SILENT;
  if (/Content-Encoding/.test(detail)) return `have it send ${KNOWN_CONTENT_ENCODINGS}`;
  if (status !== UNAUTHORIZED) return HINTS[reason];
  return hasCredentials
    ? "correct its credentials in --netrc-file or in its URL: it refuses them"
    : "give its credentials with --netrc-file";
}

/** The failure in the error of a request for the priority, or of a probe. */
export function failureOf(error: unknown): Omit<HintedFailure, "kind"> {
  const detail = messageOf(error);
  if (error instanceof NoAnswer) return { reason: error.reason, detail };
  const { reason, status } = error instanceof Failure ? error.facts : {};
  if (reason !== "status") return { reason: "garbage", detail };
  return { reason, detail, ...typeof status === "number" ? { status } : {} };
}
