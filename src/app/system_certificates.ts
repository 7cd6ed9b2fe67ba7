import { Failure, reasonOf } from "../base/failure.ts";
import type { CaCertificates } from "../upstream/http/upstream_fetch.ts";

/** Inputs for finding the certificates. */
export interface CertificateInputs {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Throws if the file is unreadable. */
  readonly readTextFile: (path: string) => string | Promise<string>;
}

/** Variables of the user's choice: Nix's, then OpenSSL's. */
export const CERTIFICATE_VARIABLES = ["NIX_SSL_CERT_FILE", "SSL_CERT_FILE"];

/** Common bundles of trusted certificates. */
export const CERTIFICATE_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
];

const CERTIFICATE_REGEXP = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The PEM certificates in a text. */
export function certificatesIn(text: string): CaCertificates {
  return text.match(CERTIFICATE_REGEXP) ?? [];
}

/**
 * The certificates that the system trusts, which the executable does not read by itself. Throws if
 * a variable names a file without certificates.
 */
export async function systemCertificates(
  { env, readTextFile }: CertificateInputs,
): Promise<CaCertificates> {
  const chosen = CERTIFICATE_VARIABLES.find((name) => env[name]);
  if (chosen !== undefined) return await certificatesOf(chosen, env[chosen] ?? "", readTextFile);
  for (const path of CERTIFICATE_BUNDLES) {
    try {
      return certificatesIn(await readTextFile(path));
    } catch {
      // Other systems use another path.
    }
  }
  return [];
}

async function certificatesOf(
  variable: string,
  path: string,
  readTextFile: CertificateInputs["readTextFile"],
): Promise<CaCertificates> {
  let found: CaCertificates;
  try {
    found = certificatesIn(await readTextFile(path));
  } catch (error) {
    throw new Failure("broken", `Cannot use ${variable} ${path}: ${reasonOf(error)}`, {}, error);
  }
  if (found.length > 0) return found;
  throw new Failure("broken", `Cannot use ${variable} ${path}: it holds no PEM certificate`);
}
