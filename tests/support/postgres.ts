import { PostgresMetadataStore } from "../../src/metadata/postgres/postgres_metadata_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { freePort } from "./free_port.ts";
import { postgresMissing } from "./postgres_missing.ts";
import {
  copyDatabase,
  databaseIn,
  queryPostgres,
  runPostgres,
  UNPRIVILEGED_ID,
} from "./postgres_programs.ts";
import { procText } from "./proc_text.ts";
import type { OwnCertificate } from "./tls_front.ts";

const SILENT = createLogger("error", { write() {} });

/** How a server ends: it tells its clients, or it crashes. */
export type Ending = "fast" | "immediate";

/** A PostgreSQL server of one test file, on 127.0.0.1; it ends with the file. */
export class PostgresServer {
  readonly port = freePort();
  readonly #folder = Deno.makeTempDirSync({ prefix: "larder-postgres-" });
  #databases = 0;
  #password = "secret";
  #migrated: Promise<string> | undefined;

  private constructor(certificate?: OwnCertificate) {
    giveAway(this.#folder);
    const data = `${this.#folder}/data`;
    runPostgres("initdb", [
      "-D",
      data,
      "-U",
      "larder",
      "-A",
      "trust",
      "-E",
      "UTF8",
      "--no-locale",
      "-N",
    ]);
    const settings = [
      `port = ${this.port}`,
      "listen_addresses = '127.0.0.1'",
      `unix_socket_directories = '${this.#folder}'`,
      // Writes that the machine loses are of no interest here.
      "fsync = off",
      ...certificate === undefined ? [] : this.#tlsSettings(certificate),
    ];
    Deno.writeTextFileSync(`${data}/postgresql.conf`, settings.join("\n"), { append: true });
  }

  /** It reads a key that is its own alone. */
  #tlsSettings({ pems }: OwnCertificate): readonly string[] {
    const files = { cert: `${this.#folder}/cert.pem`, key: `${this.#folder}/key.pem` };
    for (const part of ["cert", "key"] as const) {
      Deno.writeTextFileSync(files[part], pems[part], { mode: 0o600 });
      giveAway(files[part]);
    }
    return ["ssl = on", `ssl_cert_file = '${files.cert}'`, `ssl_key_file = '${files.key}'`];
  }

  /**
   * The server of this test file; `undefined` where `postgresMissing` says why. With a certificate
   * it also speaks TLS.
   */
  static start(certificate?: OwnCertificate): PostgresServer | undefined {
    if (postgresMissing !== "") return undefined;
    const server = new PostgresServer(certificate);
    server.start();
    globalThis.addEventListener("unload", () => {
      server.stop("immediate");
      Deno.removeSync(server.#folder, { recursive: true });
    });
    return server;
  }

  /** From now on a client needs this password, by SCRAM. */
  demandPassword(password: string): void {
    const quoted = `'${password.replaceAll("'", "''")}'`;
    queryPostgres(this.#urlOf("postgres"), `ALTER ROLE larder PASSWORD ${quoted}`);
    const file = `${this.#folder}/data/pg_hba.conf`;
    Deno.writeTextFileSync(file, "host all all 127.0.0.1/32 scram-sha-256\n");
    this.#password = password;
    runPostgres("pg_ctl", ["reload", "-D", `${this.#folder}/data`]);
  }

  start(): void {
    this.#control("start", ["-l", `${this.#folder}/log`]);
  }

  stop(ending: Ending = "fast"): void {
    this.#control("stop", ["-m", ending]);
  }

  /** Its processes are paused: connections stay open, and nothing answers. */
  freeze(): void {
    const listener = this.#listener();
    // It stops first. Then none is added, and one that ends stays as a zombie.
    Deno.kill(listener, "SIGSTOP");
    for (const pid of startedBy(listener)) Deno.kill(pid, "SIGSTOP");
  }

  wake(): void {
    const listener = this.#listener();
    for (const pid of startedBy(listener)) Deno.kill(pid, "SIGCONT");
    Deno.kill(listener, "SIGCONT");
  }

  /** The process that listens, and starts all others. */
  #listener(): number {
    return Number.parseInt(Deno.readTextFileSync(`${this.#folder}/data/postmaster.pid`));
  }

  /** The URL of a new database without tables. */
  createDatabase(): string {
    return this.#create("template0");
  }

  /** The URL of a new database with larder's tables: a copy, which costs less than to migrate. */
  async createMigrated(): Promise<string> {
    this.#migrated ??= this.#migrate();
    return this.#create(await this.#migrated);
  }

  async #migrate(): Promise<string> {
    const url = this.createDatabase();
    await using _store = await PostgresMetadataStore.open({ url, log: SILENT });
    return databaseIn(url);
  }

  #create(template: string): string {
    const url = this.#urlOf(`larder_${++this.#databases}`);
    copyDatabase(this.#urlOf(template), url);
    return url;
  }

  #urlOf(database: string): string {
    const password = encodeURIComponent(this.#password);
    return `postgres://larder:${password}@127.0.0.1:${this.port}/${database}`;
  }

  #control(action: "start" | "stop", args: readonly string[]): void {
    runPostgres("pg_ctl", [action, "-D", `${this.#folder}/data`, "-w", ...args]);
  }
}

function startedBy(pid: number): readonly number[] {
  const text = procText(`/proc/${pid}/task/${pid}/children`);
  return text.split(" ").flatMap((one) => Number(one) || []);
}

/** The server does not run as root. */
function giveAway(path: string): void {
  if (Deno.uid() === 0) Deno.chownSync(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
}

/** A store on a new database of the server. */
export async function newPostgresStore(
  server: PostgresServer | undefined,
  nowMs?: () => number,
): Promise<PostgresMetadataStore> {
  if (server === undefined) throw new Error(postgresMissing);
  return await openPostgresStore(await server.createMigrated(), nowMs);
}

export function openPostgresStore(
  url: string,
  nowMs?: () => number,
): Promise<PostgresMetadataStore> {
  return PostgresMetadataStore.open({
    url,
    log: SILENT,
    ...(nowMs === undefined ? {} : { nowMs }),
  });
}
