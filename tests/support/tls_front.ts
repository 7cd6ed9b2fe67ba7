import { tempFolder } from "./temp_folder.ts";

/** A certificate that only its own file vouches for. */
export class OwnCertificate implements Disposable {
  readonly #folder = tempFolder();

  /** `subject`: the hosts that it is for, as OpenSSL writes them. */
  constructor(subject = "IP:127.0.0.1", isAuthority = false, days = 2) {
    const { success, stderr } = new Deno.Command("openssl", {
      args: [
        ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
        ...["-nodes", "-days", String(days), "-subj", "/CN=larder test", "-keyout", this.keyFile],
        ...["-out", this.caFile, "-addext", `subjectAltName=${subject}`],
        ...["-addext", `basicConstraints=critical,CA:${isAuthority ? "TRUE" : "FALSE"}`],
      ],
      stderr: "piped",
      stdout: "null",
    }).outputSync();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
  }

  get caFile(): string {
    return `${this.#folder.path}/cert.pem`;
  }

  get pems(): { readonly cert: string; readonly key: string } {
    return { cert: Deno.readTextFileSync(this.caFile), key: Deno.readTextFileSync(this.keyFile) };
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }

  get keyFile(): string {
    return `${this.#folder.path}/key.pem`;
  }
}

/** TLS in front of a port of 127.0.0.1, with a certificate of its own. */
export class TlsFront implements Disposable {
  readonly #certificate: OwnCertificate;
  readonly #listener: Deno.TlsListener;

  constructor(targetPort: number, subject?: string, isAuthority?: boolean) {
    this.#certificate = new OwnCertificate(subject, isAuthority);
    const place = { hostname: "127.0.0.1", port: 0 };
    this.#listener = Deno.listenTls({ ...place, ...this.#certificate.pems });
    this.#accept(targetPort);
  }

  get caFile(): string {
    return this.#certificate.caFile;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#listener.addr.port}`;
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    this.#certificate[Symbol.dispose]();
  }

  async #accept(targetPort: number): Promise<void> {
    for (;;) {
      let client: Deno.TlsConn;
      try {
        client = await this.#listener.accept();
      } catch (error) {
        if (error instanceof Deno.errors.BadResource) return;
        continue;
      }
      this.#forward(client, targetPort);
    }
  }

  async #forward(client: Deno.TlsConn, targetPort: number): Promise<void> {
    const target = await Deno.connect({ hostname: "127.0.0.1", port: targetPort });
    const ends = [client.readable.pipeTo(target.writable), target.readable.pipeTo(client.writable)];
    await Promise.allSettled(ends);
  }
}
