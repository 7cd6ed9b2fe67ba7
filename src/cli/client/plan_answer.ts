import { Failure } from "../../base/failure.ts";
import { PLAN_PATHS_MAX } from "../../cache/plan/planner.ts";
import { isStorePathHash, type StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import { failedRun } from "./followed_lines.ts";
import type { ServerClient } from "./server_client.ts";
import { ServerJson } from "./server_json.ts";

const STATES = ["here", "upstream", "nowhere", "unknown"] as const;

/** Where the server would find a store path. */
export interface AnsweredPath {
  readonly hash: StorePathHash;
  readonly name: string | undefined;
  readonly state: (typeof STATES)[number];
  /** Paths with one NAR file share it. */
  readonly nar: string | undefined;
  readonly bytes: number | undefined;
  readonly upstreams: readonly string[];
}

export interface AnsweredUpstream {
  readonly url: string;
  readonly isUp: boolean;
  readonly bytesPerSecond: number | undefined;
  readonly latencyMs: number | undefined;
}

export interface PlanAnswer {
  readonly paths: readonly AnsweredPath[];
  readonly upstreams: readonly AnsweredUpstream[];
}

export interface PlanOrder {
  readonly roots: readonly StorePathHash[];
  /** Paths that the server leaves out, with what only they reach. */
  readonly except: readonly StorePathHash[];
  /** Called with each path as it comes. */
  readonly came: () => void;
}

/** Upstreams may be slow, and other plans come first. */
const HEAD_LIMIT_MS = 60_000;
const STANDSTILL_MAX_MS = 120_000;

/** A path has some 300 bytes. */
const BYTES_MAX = 64 << 20;
const LINES_MAX = PLAN_PATHS_MAX + 1;

/** Asks the server once where it would find the closures of store paths. */
export async function requestPlan(
  client: Pick<ServerClient, "request">,
  { roots, except, came }: PlanOrder,
): Promise<PlanAnswer> {
  if (roots.length + except.length > PLAN_PATHS_MAX) throw tooMany();
  const lines = [...roots, ...except.map((hash) => `-${hash}`)];
  const body = `${lines.join("\n")}\n`;
  const answer = await client.request("POST", "/plan", { body, limitMs: HEAD_LIMIT_MS });
  const paths: AnsweredPath[] = [];
  for await (const line of linesOf(answer)) {
    const event = line.at("event").text;
    if (event === "path") paths.push(pathIn(line));
    else if (event === "done") {
      return { paths, upstreams: line.at("upstreams").list.map(upstreamIn) };
    } else if (event === "too_many_paths") throw tooMany();
    else if (event === "failed") throw failedRun(line.at("part").text);
    else throw unreadable();
    came();
  }
  throw new Failure("corrupt", "Cannot follow the plan: it broke off; see the server's log");
}

function tooMany(): Failure {
  const most = PLAN_PATHS_MAX.toLocaleString("en-US");
  return new Failure("bad-request", `Cannot plan: the closures have over ${most} paths`);
}

function pathIn(line: ServerJson): AnsweredPath {
  const hash = line.at("hash").text ?? "";
  const state = STATES.find((one) => one === line.at("state").text);
  if (!isStorePathHash(hash) || state === undefined) throw unreadable();
  return {
    hash,
    name: line.at("name").text,
    state,
    nar: line.at("nar").text,
    bytes: line.at("bytes").number,
    upstreams: line.at("upstreams").list.map((one) => one.text ?? ""),
  };
}

function upstreamIn(one: ServerJson): AnsweredUpstream {
  return {
    url: one.at("url").text ?? "",
    isUp: one.at("is_up").isTrue,
    bytesPerSecond: one.at("bytes_per_second").number,
    latencyMs: one.at("latency_ms").number,
  };
}

/** Any program may listen at the address: throws at a limit. */
async function* linesOf({ body }: Response): AsyncGenerator<ServerJson> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let bytes = 0;
  let count = 0;
  try {
    for (;;) {
      const read = await clock.within(reader.read(), STANDSTILL_MAX_MS);
      if (read === undefined) {
        throw new Failure("corrupt", "Cannot follow the plan: the server stands still");
      }
      if (read.done) return;
      bytes += read.value.length;
      const lines = (rest + decoder.decode(read.value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      count += lines.length;
      if (bytes > BYTES_MAX || count > LINES_MAX || rest.length > LINE_LENGTH_MAX) {
        throw unreadable();
      }
      for (const line of lines) yield parsed(line);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    const message = "Cannot follow the plan: the connection broke; see the server's log";
    throw new Failure("corrupt", message, {}, error);
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

const LINE_LENGTH_MAX = 64 * 1024;

function parsed(line: string): ServerJson {
  try {
    return new ServerJson(JSON.parse(line));
  } catch {
    throw unreadable();
  }
}

function unreadable(): Failure {
  return new Failure(
    "corrupt",
    "Cannot read the plan: is the server larder, and as new as this one?",
  );
}
