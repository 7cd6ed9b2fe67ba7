import { eventually } from "./eventually.ts";
import { freePort } from "./free_port.ts";
import { tempFolder } from "./temp_folder.ts";

/** A request as nginx read it. */
export interface NginxRequest {
  readonly id: string;
  readonly method: string;
  readonly target: string;
}

/**
 * A real nginx in front of ports, which reuses its connections. It gives each request an id, and
 * the ports in turn.
 */
export class NginxFront implements AsyncDisposable {
  readonly port = freePort();
  readonly #folder = tempFolder();
  readonly #child: Deno.ChildProcess;

  private constructor(targetPorts: readonly number[], locations: string) {
    const { path } = this.#folder;
    Deno.writeTextFileSync(
      `${path}/nginx.conf`,
      confOf({ path, port: this.port, targetPorts, locations }),
    );
    const args = ["-p", path, "-e", "stderr", "-c", `${path}/nginx.conf`];
    this.#child = new Deno.Command("nginx", { args, stdout: "null", stderr: "null" }).spawn();
  }

  /** `locations`: lines of its server block, in place of those for tests of messages. */
  static async open(
    targets: number | readonly number[],
    locations = VERBATIM,
  ): Promise<NginxFront> {
    const front = new NginxFront([targets].flat(), locations);
    await eventually("nginx listens", async () => {
      try {
        (await Deno.connect({ hostname: "127.0.0.1", port: front.port })).close();
        return true;
      } catch {
        return false;
      }
    });
    return front;
  }

  /** The requests that it has answered, by the id that it gave. */
  requests(): ReadonlyMap<string, NginxRequest> {
    const lines = Deno.readTextFileSync(`${this.#folder.path}/access.log`).split("\n");
    return new Map(lines.flatMap((line) => {
      const [id = "", method = "", target = ""] = line.split(" ");
      return id === "" ? [] : [[id, { id, method, target }] as const];
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#child.status;
    this.#folder[Symbol.dispose]();
  }
}

/** Everything as it came, over kept connections. */
const VERBATIM = `    underscores_in_headers on;
    ignore_invalid_headers off;
    location / {
      proxy_pass http://larder;
      proxy_http_version 1.1;
      proxy_request_buffering off;
      proxy_set_header Connection "";
      proxy_set_header X-Request-Id $request_id;
    }`;

interface ConfParts {
  readonly path: string;
  readonly port: number;
  readonly targetPorts: readonly number[];
  readonly locations: string;
}

function confOf({ path: folder, port, targetPorts, locations }: ConfParts): string {
  // As root, the workers would otherwise change to a user without access to the folder.
  const user = Deno.uid() === 0 ? "user root root;\n" : "";
  const servers = targetPorts.map((one) => `server 127.0.0.1:${one};`).join(" ");
  return `${user}daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 512; }
http {
  log_format asked escape=none '$request_id $request_method $request_uri';
  access_log ${folder}/access.log asked;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream larder { ${servers} keepalive ${targetPorts.length}; }
  server {
    listen 127.0.0.1:${port};
${locations}
  }
}
`;
}
