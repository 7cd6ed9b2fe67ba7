import { tempFolder } from "./temp_folder.ts";

/** Why no certificate can be made here; empty when it can. */
export function tlsAvailable(): string {
  try {
    const { success } = new Deno.Command("openssl", { args: ["version"] }).outputSync();
    return success ? "" : "openssl does not run";
  } catch {
    return "openssl is not installed";
  }
}

/** TLS in front of a port of 127.0.0.1, with a certificate that only `caFile` vouches for. */
export class TlsFront implements Disposable {
  readonly #folder = tempFolder();
  readonly #listener: Deno.TlsListener;

  constructor(targetPort: number) {
    const key = `${this.#folder.path}/key.pem`;
    const { success, stderr } = new Deno.Command("openssl", {
      args: [
        ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
        ...["-nodes", "-days", "2", "-subj", "/CN=larder test", "-keyout", key],
        ...["-out", this.caFile, "-addext", "subjectAltName=IP:127.0.0.1"],
        // A certificate that vouches for itself is one of an end, too.
        ...["-addext", "basicConstraints=critical,CA:FALSE"],
      ],
      stderr: "piped",
      stdout: "null",
    }).outputSync();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
    this.#listener = Deno.listenTls({
      hostname: "127.0.0.1",
      port: 0,
      cert: Deno.readTextFileSync(this.caFile),
      key: Deno.readTextFileSync(key),
    });
    this.#accept(targetPort);
  }

  get caFile(): string {
    return `${this.#folder.path}/cert.pem`;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#listener.addr.port}`;
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    this.#folder[Symbol.dispose]();
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
