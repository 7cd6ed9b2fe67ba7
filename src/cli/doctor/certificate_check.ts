import { createPublicKey, type KeyObject, X509Certificate } from "node:crypto";
import { messageOf, reasonOf } from "../../base/failure.ts";
import { answerInTime, readNamedFile } from "../../base/named_file.ts";
import { formatSeconds } from "../../base/format_units.ts";
import type { Settings } from "../../config/options.ts";
import { type Finding, findingsOn } from "./finding.ts";

/** Remaining time that is a warning, as in the alert LarderCertificateExpires. */
const WARNING_MS = 14 * 86_400_000;

export interface CertificateFacts {
  readonly path: string;
  /** The certificate and its chain, as PEM. */
  readonly cert: string;
  /** The private key, as PEM; `undefined`: only another user can read it. */
  readonly key: string | undefined;
  readonly nowMs: number;
}

/** The finding on larder's own certificate; none without HTTPS. */
export async function checkCertificateOf(
  settings: Settings,
  nowMs: number,
): Promise<readonly Finding[]> {
  const path = settings["server.tls-cert"];
  const keyPath = settings["server.tls-key"];
  if (path === undefined || keyPath === undefined) return [];
  const { failed, notChecked } = findingsOn("certificate");
  try {
    // One after the other, so that the finding names the certificate where both are missing.
    const cert = await answerInTime(readNamedFile(path));
    const key = await answerInTime(readableText(keyPath));
    return [checkCertificate({ path, cert, key, nowMs })];
  } catch (error) {
    if (error instanceof Deno.errors.PermissionDenied) {
      return [notChecked(`${path}: ${reasonOf(error)}`, "run this as the user of larder")];
    }
    const advice = "larder serve needs both files: correct --server-tls-cert and --server-tls-key";
    return [failed(messageOf(error), advice)];
  }
}

/** Reports when the certificate expires, and whether the key belongs to it. */
export function checkCertificate({ path, cert, key, nowMs }: CertificateFacts): Finding {
  const { ok, warning, failed } = findingsOn("certificate");
  let own: X509Certificate;
  try {
    // The first is the server's own.
    own = new X509Certificate(cert);
  } catch (error) {
    return failed(
      `Cannot read ${path}: ${messageOf(error)}`,
      "give a PEM file as --server-tls-cert",
    );
  }
  if (key !== undefined && isOtherKey(own, key)) {
    return failed(`the key is not that of ${path}`, "give its key with --server-tls-key");
  }
  const [from, until] = [Date.parse(own.validFrom), Date.parse(own.validTo)];
  if (nowMs < from) {
    const fact = `${path} is good from ${new Date(from).toISOString()} only`;
    return failed(fact, "check the clock of this machine");
  }
  const day = new Date(until).toISOString().slice(0, 10);
  const renew = "renew it at the same path: larder takes it up without a restart";
  if (nowMs >= until) return failed(`${path} expired on ${day}`, renew);
  const fact = `${path} expires in ${formatSeconds((until - nowMs) / 1_000)}, on ${day}`;
  return until - nowMs < WARNING_MS ? warning(fact, renew) : ok(fact);
}

/** False, too, for keys that this Deno cannot read: TLS has another library for them. */
function isOtherKey(certificate: X509Certificate, key: string): boolean {
  try {
    return !spkiOf(createPublicKey(key)).equals(spkiOf(certificate.publicKey));
  } catch {
    return false;
  }
}

function spkiOf(key: KeyObject) {
  return key.export({ format: "der", type: "spki" });
}

async function readableText(path: string): Promise<string | undefined> {
  try {
    return await readNamedFile(path);
  } catch (error) {
    // The check of permissions reports it.
    if (error instanceof Deno.errors.PermissionDenied) return undefined;
    throw error;
  }
}
