/** What a request says besides its URL. Redirects are the caller's, unless it says so. */
export interface FetchOptions {
  readonly method: "GET" | "HEAD";
  readonly headers: Readonly<Record<string, string>>;
  /** Ends the request, and the body of its response. */
  readonly signal: AbortSignal;
  readonly redirect: "manual";
}

/** One pool of connections to other hosts. Disposing of it closes them. */
export interface HttpClient extends Disposable {
  /** Rejects where no response comes, and with the signal's reason. */
  fetch(url: URL | string, options: FetchOptions): Promise<Response>;
  /** True when a connection stood; false when it was refused or aborted. */
  dial(place: { readonly hostname: string; readonly port: number }, signal: AbortSignal): Promise<
    boolean
  >;
  /** The IP addresses of a host; none for an unknown one. */
  addresses(hostname: string): Promise<readonly string[]>;
}

/** The network of one larder. */
export interface Net {
  /** `caCertificates`: PEM texts to trust besides the system's. Throws when one cannot be used. */
  client(caCertificates: readonly string[]): HttpClient;
}
