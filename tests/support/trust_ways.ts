/** A way to make larder trust an authority. */
export interface Trust {
  readonly flags?: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
}

/** By name, each for the certificate in a file. */
export const TRUST_WAYS: Readonly<Record<string, (caFile: string) => Trust>> = {
  "--cache-upstream-ca-file": (path) => ({ flags: { "cache-upstream-ca-file": path } }),
  "NIX_SSL_CERT_FILE": (path) => ({ environment: { NIX_SSL_CERT_FILE: path } }),
  "SSL_CERT_FILE": (path) => ({ environment: { SSL_CERT_FILE: path } }),
};
