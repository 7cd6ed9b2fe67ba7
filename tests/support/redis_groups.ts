import { eventually } from "./eventually.ts";
import { freePort } from "./free_port.ts";
import { RedisServer } from "./redis_server.ts";
import { OwnCertificate } from "./tls_front.ts";
import { tempFolder } from "./temp_folder.ts";

/** The silence after which the others take a server for dead. */
const SILENCE_MS = 2_000;

/** Of all keys of a cluster: each master has a third. */
const SLOTS = 16_384;

const MASTERS = 3;

/** Several Redis servers that clients know by the addresses of some. */
export interface RedisGroup extends AsyncDisposable {
  readonly addresses: readonly string[];
  /** Has the locks, or a part of them. One of the others takes its place once it is dead. */
  readonly master: RedisServer;
  /** Nobody takes its place. */
  readonly isAlone?: boolean;
  /** Of the authority that its certificate is from, if it speaks TLS. */
  readonly caFile?: string;
}

/** Three masters of a cluster; the first one has a replica. */
export async function openRedisCluster(): Promise<RedisGroup> {
  await using opening = new AsyncDisposableStack();
  const folder = opening.use(tempFolder()).path;
  const servers: RedisServer[] = [];
  for (let place = 0; place <= MASTERS; place++) {
    const words = ["--cluster-enabled", "yes", "--cluster-port", `${freePort()}`];
    const files = ["--dir", folder, "--cluster-config-file", `nodes-${place}.conf`];
    const limits = ["--cluster-node-timeout", `${SILENCE_MS}`];
    servers.push(opening.use(await RedisServer.open({ words: [...words, ...files, ...limits] })));
  }
  const [master, second, third, replica] = servers;
  if (!master || !second || !third || !replica) {
    throw new Error("Cannot open a cluster: no servers");
  }
  [master, second, third].forEach((server, place) => {
    const [first, next] = [place, place + 1].map((at) => Math.ceil(SLOTS * at / MASTERS));
    server.ask("CLUSTER", "ADDSLOTSRANGE", `${first}`, `${Number(next) - 1}`);
    server.ask("CLUSTER", "SET-CONFIG-EPOCH", `${place + 1}`);
  });
  for (const server of servers.slice(1)) meet(server, master);
  await eventually("all know of all", () => (
    servers.every((server) => /cluster_known_nodes:4/.test(server.ask("CLUSTER", "INFO")))
  ));
  const id = master.ask("CLUSTER", "MYID").trim();
  await eventually(
    "it is a replica",
    () => replica.ask("CLUSTER", "REPLICATE", id).startsWith("OK"),
  );
  await eventually("the cluster has all keys", () => (
    servers.every((server) => /cluster_state:ok/.test(server.ask("CLUSTER", "INFO"))) &&
    isInStep(replica)
  ));
  const resources = opening.move();
  return {
    addresses: [master, second, third].map(({ address }) => address),
    master,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

function meet(server: RedisServer, other: RedisServer): void {
  const busPort = /cluster-port\s+(\d+)/.exec(other.ask("CONFIG", "GET", "cluster-port"))?.[1] ??
    "";
  server.ask("CLUSTER", "MEET", "127.0.0.1", `${other.port}`, busPort);
}

export const SENTINEL_MASTER = "locks";

/** The same, which all speak TLS alone. */
export async function openRedisTlsSentinel(): Promise<RedisGroup> {
  await using opening = new AsyncDisposableStack();
  const certificate = opening.use(new OwnCertificate());
  const group = opening.use(await openRedisSentinel(certificate));
  const resources = opening.move();
  return {
    ...group,
    caFile: certificate.caFile,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** A master and its replica, which a sentinel watches. */
export async function openRedisSentinel(certificate?: OwnCertificate): Promise<RedisGroup> {
  await using opening = new AsyncDisposableStack();
  const folder = opening.use(tempFolder()).path;
  const speech = certificate === undefined ? {} : { certificate };
  const master = opening.use(await RedisServer.open(speech));
  const words = ["--replicaof", "127.0.0.1", `${master.port}`, "--dir", folder];
  const replica = opening.use(await RedisServer.open({ words, ...speech }));
  await eventually("the replica has all", () => isInStep(replica));
  const watched = [
    `sentinel monitor ${SENTINEL_MASTER} 127.0.0.1 ${master.port} 1`,
    `sentinel down-after-milliseconds ${SENTINEL_MASTER} ${SILENCE_MS}`,
    `dir ${folder}`,
  ];
  const sentinelFile = `${folder}/sentinel.conf`;
  Deno.writeTextFileSync(sentinelFile, watched.join("\n"));
  const sentinel = opening.use(await RedisServer.open({ sentinelFile, ...speech }));
  await eventually("the sentinel knows the replica", () => (
    sentinel.ask("SENTINEL", "replicas", SENTINEL_MASTER).includes(`${replica.port}`)
  ));
  const resources = opening.move();
  return {
    addresses: [sentinel.address],
    master,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** One server that speaks TLS alone. */
export async function openRedisTls(): Promise<RedisGroup> {
  await using opening = new AsyncDisposableStack();
  const certificate = opening.use(new OwnCertificate());
  const master = opening.use(await RedisServer.open({ certificate }));
  const resources = opening.move();
  return {
    addresses: [master.address],
    master,
    isAlone: true,
    caFile: certificate.caFile,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

function isInStep(replica: RedisServer): boolean {
  return /master_link_status:up/.test(replica.ask("INFO", "replication"));
}
