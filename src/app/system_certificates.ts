import { Failure, reasonOf } from "../base/failure.ts";
import type { CaCertificates } from "../upstream/http/http_settings.ts";

/** Inputs for finding the certificates. */
export interface CertificateInputs {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Throws if the file is unreadable. */
  readonly readTextFile: (path: string) => string;
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
export function systemCertificates({ env, readTextFile }: CertificateInputs): CaCertificates {
  const chosen = CERTIFICATE_VARIABLES.find((name) => env[name]);
  if (chosen !== undefined) return certificatesOf(chosen, env[chosen] ?? "", readTextFile);
  for (const path of CERTIFICATE_BUNDLES) {
    try {
      return certificatesIn(readTextFile(path));
    } catch {
      // Other systems use another path.
    }
  }
  return [];
}

function certificatesOf(
  variable: string,
  path: string,
  readTextFile: CertificateInputs["readTextFile"],
): CaCertificates {
  let found: CaCertificates;
  try {
    found = certificatesIn(readTextFile(path));
  } catch (error) {
    throw new Failure("broken", `Cannot use ${variable} ${path}: ${reasonOf(error)}`, {}, error);
  }
  if (found.length > 0) return found;
  throw new Failure("broken", `Cannot use ${variable} ${path}: it holds no PEM certificate`);
}
