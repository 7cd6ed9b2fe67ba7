import denoJson from "../../../deno.json" with { type: "json" };
import { Failure, messageOf } from "../../base/failure.ts";
import { answerJson, answerText } from "../client/server_answer.ts";
import { ServerJson } from "../client/server_json.ts";
import { type ServerClient, ServerRefusal } from "../client/server_client.ts";
import { type Finding, findingsOn } from "./finding.ts";

/** The running larder that the checks address. */
export interface ServerTarget {
  /** Its address for people. */
  readonly shown: string;
  readonly client: Pick<ServerClient, "request">;
}

/** State of the running larder, by its own answers. */
export type ServerState =
  | {
    readonly kind: "running";
    /** `null`: it does not sign. `undefined`: it wants a token. */
    readonly publicKey: string | null | undefined;
    /** `undefined`: it wants a token. */
    readonly stats: ServerStats | undefined;
    /** Names of response headers that only a proxy adds. */
    readonly proxyHeaders: readonly string[];
  }
  | { readonly kind: "silent"; readonly reason: string }
  | { readonly kind: "other program"; readonly reason: string };

/** The part of `/stats` that the checks need. */
export interface ServerStats {
  readonly version: string;
  readonly usedBytes: number | undefined;
  /** Our address, as the server sees it. */
  readonly client: string | undefined;
}

const ANSWER_LIMIT_MS = 5_000;

const KEY_LIMITS = { limitMs: ANSWER_LIMIT_MS, bytesMax: 1_024 };

/** larder sends neither. */
const PROXY_HEADERS = ["server", "via"];

/** Asks the server for its public key and figures. Never rejects. */
export async function lookAtServer(target: ServerTarget | undefined): Promise<ServerState> {
  if (target === undefined) return { kind: "silent", reason: "its address is unknown" };
  let proxyHeaders: readonly string[];
  try {
    const ready = await target.client.request("GET", "/healthz", { limitMs: ANSWER_LIMIT_MS });
    await ready.body?.cancel();
    proxyHeaders = PROXY_HEADERS.filter((name) => ready.headers.has(name));
  } catch (error) {
    const kind = error instanceof ServerRefusal ? "other program" : "silent";
    return { kind, reason: messageOf(error) };
  }
  try {
    const [publicKey, stats] = await Promise.all([publicKeyOf(target), statsOf(target)]);
    return { kind: "running", publicKey, stats, proxyHeaders };
  } catch (error) {
    return { kind: "other program", reason: messageOf(error) };
  }
}

/** The figures; `undefined` if they need a token. `headers` go into the request. */
export async function statsOf(
  target: ServerTarget,
  headers: Readonly<Record<string, string>> = {},
): Promise<ServerStats | undefined> {
  let answer: ServerJson;
  try {
    const limits = { limitMs: ANSWER_LIMIT_MS, headers };
    answer = new ServerJson(await answerJson(target.client, "/stats", limits));
  } catch (error) {
    if (isTokenMissing(error)) return undefined;
    throw error;
  }
  const version = answer.at("version").text;
  if (version === undefined) {
    throw new Failure("broken", "its /stats are not those of larder");
  }
  const usedBytes = answer.at("size", "used_bytes").number;
  return { version, usedBytes, client: answer.at("client").text };
}

/** The finding on the server itself. */
export function checkServer(
  target: ServerTarget | undefined,
  state: ServerState,
): readonly Finding[] {
  const { ok, warning, failed } = findingsOn("server");
  if (state.kind === "silent") {
    if (target === undefined) {
      return [warning("its address is unknown", "give it with --server URL")];
    }
    return [
      warning(`stopped, or elsewhere: ${state.reason}`, "the checks that need it do not run"),
    ];
  }
  const shown = target?.shown ?? "";
  if (state.kind === "other program") {
    return [failed(`${shown} is no larder: ${state.reason}`, "give its address with --server URL")];
  }
  const { stats } = state;
  if (stats === undefined) return [ok(`runs at ${shown}; its figures need a token`)];
  if (stats.version === denoJson.version) return [ok(`runs at ${shown}, version ${stats.version}`)];
  const versions = `runs at ${shown}, version ${stats.version}; this one is ${denoJson.version}`;
  return [warning(versions, "restart the server after an upgrade")];
}

async function publicKeyOf(target: ServerTarget): Promise<string | null | undefined> {
  try {
    return (await answerText(target.client, "/pubkey", KEY_LIMITS)).trim();
  } catch (error) {
    if (isTokenMissing(error)) return undefined;
    if (error instanceof ServerRefusal && error.status === 404) return null;
    throw error;
  }
}

function isTokenMissing(error: unknown): boolean {
  return error instanceof ServerRefusal && (error.status === 401 || error.status === 403);
}
