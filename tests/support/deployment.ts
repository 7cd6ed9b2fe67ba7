import { parse, parseAllDocuments } from "yaml";
import { eventually } from "./eventually.ts";
import { tempFolder } from "./temp_folder.ts";

const FOLDER = new URL("../../deploy/several-machines/", import.meta.url);

/** Hosts and ports of a deployment, and where they are on this machine. */
export type Places = Readonly<Record<string, string>>;

/** A text that names hosts, with those of this machine in their stead. */
export function placedHere(text: string, places: Places): string {
  return Object.entries(places).reduce((placed, [there, here]) => (
    placed.replaceAll(there, here)
  ), text);
}

/** One container of compose.yaml. */
export interface ComposeService {
  readonly hostname?: string;
  readonly networks?: { readonly default: { readonly ipv4_address: string } };
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly volumes?: readonly string[];
}

/** The services of compose.yaml, merged as compose does. */
export function composeServices(): Readonly<Record<string, ComposeService>> {
  return parse(textOf("compose.yaml"), { merge: true }).services;
}

interface Probe {
  readonly httpGet: { readonly path: string };
}

interface PodContainer {
  readonly args: readonly string[];
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
  readonly startupProbe: Probe;
}

interface ProjectedSecret {
  readonly secret: {
    readonly items: readonly { readonly key: string; readonly path: string }[];
  };
}

/** The pods of kubernetes.yaml. */
export interface KubernetesPods {
  readonly container: PodContainer;
  /** The configuration file. */
  readonly settings: string;
  /** The key of the secret, by the name of the file that has its content. */
  readonly secretKeys: Readonly<Record<string, string>>;
  /** One for each replica, in the order of its names. */
  readonly pods: readonly { readonly args: readonly string[]; readonly host: string }[];
}

/** The pods of the StatefulSet in kubernetes.yaml, whose names the service of members gives out. */
export function kubernetesPods(): KubernetesPods {
  const objects = parseAllDocuments(textOf("kubernetes.yaml")).map((one) => one.toJS());
  const { metadata: { name }, spec } = objects.find(({ kind }) => kind === "StatefulSet");
  const [container] = spec.template.spec.containers;
  const service = objects.find(({ metadata }) => metadata.name === spec.serviceName);
  const pods = Array.from({ length: spec.replicas }, (_, at) => ({
    host: `${name}-${at}.${service.metadata.name}:${service.spec.ports[0].port}`,
    args: container.args.map((word: string) => word.replace("$(POD_NAME)", `${name}-${at}`)),
  }));
  const { data } = objects.find(({ kind }) => kind === "ConfigMap");
  const projected = spec.template.spec.volumes.find((one: object) => "projected" in one).projected;
  const secretKeys = Object.fromEntries(
    projected.sources.flatMap(({ secret }: ProjectedSecret) => (
      secret.items.map(({ key, path }) => [path, key])
    )),
  );
  return { container, pods, settings: data["config.yaml"], secretKeys };
}

/** A real nginx with nginx.conf. Disposing of it ends it. */
export async function startNginx(places: Places, port: number): Promise<AsyncDisposable> {
  const folder = tempFolder();
  const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const temp = kinds.map((kind) => `${kind}_temp_path ${folder.path}/${kind};`).join(" ");
  const conf = placedHere(textOf("nginx.conf"), places)
    .replace("http {", `http { access_log off; ${temp}`);
  Deno.writeTextFileSync(`${folder.path}/nginx.conf`, conf);
  // As root, the workers would otherwise change to a user without access to the folder.
  const user = Deno.uid() === 0 ? "user root root;" : "";
  const globals = `daemon off; pid ${folder.path}/pid; ${user}`;
  const args = ["-p", folder.path, "-e", "stderr", "-c", "nginx.conf", "-g", globals];
  const child = new Deno.Command("nginx", { args, stdout: "null", stderr: "null" }).spawn();
  await eventually("nginx listens", () => listens(port));
  return {
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.status;
      folder[Symbol.dispose]();
    },
  };
}

async function listens(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch {
    return false;
  }
}

function textOf(name: string): string {
  return Deno.readTextFileSync(new URL(name, FOLDER));
}
