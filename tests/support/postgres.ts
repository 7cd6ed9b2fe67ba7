import { PostgresMetadataStore } from "../../src/metadata/postgres/postgres_metadata_store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { freePort } from "./free_port.ts";

const SILENT = createLogger("error", { write() {} });

/** Of `nobody`: PostgreSQL refuses to run as root. */
const UNPRIVILEGED_ID = 65_534;

const PROGRAMS = programFolder();

/** Why no PostgreSQL can run here; empty when it can. */
export const postgresMissing = PROGRAMS === undefined
  ? "PostgreSQL is not installed (Debian: apt install postgresql)"
  : "";

/** How a server ends: it tells its clients, or it crashes. */
export type Ending = "fast" | "immediate";

/** A PostgreSQL server of one test file, on 127.0.0.1; it ends with the file. */
export class PostgresServer {
  readonly port = freePort();
  readonly #folder = Deno.makeTempDirSync({ prefix: "larder-postgres-" });
  #databases = 0;
  #migrated: Promise<string> | undefined;

  private constructor() {
    if (Deno.uid() === 0) Deno.chownSync(this.#folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
    const data = `${this.#folder}/data`;
    run("initdb", ["-D", data, "-U", "larder", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"]);
    const settings = [
      `port = ${this.port}`,
      "listen_addresses = '127.0.0.1'",
      `unix_socket_directories = '${this.#folder}'`,
      // What the machine loses is of no interest here.
      "fsync = off",
    ];
    Deno.writeTextFileSync(`${data}/postgresql.conf`, settings.join("\n"), { append: true });
  }

  /** The server of this test file; `undefined` where `postgresMissing` says why. */
  static start(): PostgresServer | undefined {
    if (postgresMissing !== "") return undefined;
    const server = new PostgresServer();
    server.start();
    globalThis.addEventListener("unload", () => {
      server.stop("immediate");
      Deno.removeSync(server.#folder, { recursive: true });
    });
    return server;
  }

  start(): void {
    this.#control("start", ["-l", `${this.#folder}/log`]);
  }

  stop(ending: Ending = "fast"): void {
    this.#control("stop", ["-m", ending]);
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
    return new URL(url).pathname.slice(1);
  }

  #create(template: string): string {
    const name = `larder_${++this.#databases}`;
    this.#sql(`CREATE DATABASE ${name} TEMPLATE ${template}`);
    return `postgres://larder:secret@127.0.0.1:${this.port}/${name}`;
  }

  #sql(text: string): void {
    const connection = ["-h", "127.0.0.1", "-p", `${this.port}`, "-U", "larder"];
    run("psql", [...connection, "-d", "postgres", "-qc", text]);
  }

  #control(action: "start" | "stop", args: readonly string[]): void {
    run("pg_ctl", [action, "-D", `${this.#folder}/data`, "-w", ...args]);
  }
}

/** The newest release on this machine. */
function programFolder(): string | undefined {
  const root = "/usr/lib/postgresql";
  try {
    const releases = [...Deno.readDirSync(root)].map(({ name }) => Number(name));
    return `${root}/${Math.max(...releases)}/bin`;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return undefined;
  }
}

function run(program: string, args: readonly string[]): void {
  const id = `${UNPRIVILEGED_ID}`;
  const words = [`${PROGRAMS}/${program}`, ...args];
  const unprivileged = ["setpriv", `--reuid=${id}`, `--regid=${id}`, "--clear-groups", ...words];
  const [command = "", ...rest] = Deno.uid() === 0 ? unprivileged : words;
  const options = { args: rest, cwd: "/", stdin: "null", stdout: "null", stderr: "piped" } as const;
  const { success, stderr } = new Deno.Command(command, options).outputSync();
  if (!success) throw new Error(`Cannot run ${program}: ${new TextDecoder().decode(stderr)}`);
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
