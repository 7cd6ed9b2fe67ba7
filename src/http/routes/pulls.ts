import type { Pull, PulledTimes, PullPath, Pulls, WholePull } from "../../history/pulls.ts";
import { type Answer, lineAnswer, prefersHtml, queryIn, textAnswer } from "../message/message.ts";
import type { Page } from "../page/page.ts";
import { pullSentence, pullWords, whatOf } from "../stats/pull_words.ts";
import type { Route, Routed } from "./router.ts";

/** Longer ones name no token and no address. */
const CLIENT_CHARS_MAX = 200;

/** Longer ones are of no pull. */
const ID_CHARS_MAX = 40;

/** Who may not manage larder learns no address or name of others. */
const OTHER_CLIENT = "another client";

export interface PullRouteDeps {
  readonly pulls: Pick<Pulls, "newest" | "find">;
  readonly page: () => Promise<Page>;
  readonly nowMs: () => number;
}

const PARTS = { status: 200, type: "application/json", lifetime: "never" } as const;

/**
 * `/pulls`: the last pulls of clients, or of one (`?client=`), the newest first, for browsers as a
 * page. `/pulls/{id}`: one with its slowest paths, for browsers as a timeline.
 */
export function pullRoutes({ pulls, page, nowMs }: PullRouteDeps): readonly Route[] {
  return [{
    name: "/pulls",
    path: "/pulls",
    audience: "own-names",
    query: { GET: ["client"] },
    methods: {
      async GET(routed) {
        const { request, head } = routed;
        const client = new URLSearchParams(queryIn(request.url)).get("client");
        if (client !== null && (client === "" || client.length > CLIENT_CHARS_MAX)) {
          const line = "The client must be a token's name or an address, such as ?client=10.0.0.7";
          return lineAnswer(400, line, head);
        }
        const shown = shownClient(routed, await routed.mayManage());
        const mayAsk = client === null || shown(client) === client;
        const found = mayAsk ? await pulls.newest(undefined, client ?? undefined) : [];
        if (!prefersHtml(request.headers.get("accept"))) {
          const list = found.map((pull) => pullJson(pull, shown(pull.client), nowMs()));
          return textAnswer(JSON.stringify(list), head, { ...PARTS, headers: { vary: "Accept" } });
        }
        const listed = found.map((pull) => ({ pull, client: shown(pull.client) }));
        const html = (shownPage: Page) => shownPage.pulls(listed, nowMs());
        return await htmlAnswer(page, html, head);
      },
    },
  }, {
    name: "/pulls/{id}",
    path: /^\/pulls\/(.*)$/,
    audience: "own-names",
    query: {},
    methods: {
      async GET(routed) {
        const { request, head, params: [id = ""] } = routed;
        const pull = id.length > ID_CHARS_MAX ? undefined : await pulls.find(id);
        if (pull === undefined) return lineAnswer(404, NO_PULL, head, { vary: "Accept" });
        const client = shownClient(routed, await routed.mayManage())(pull.client);
        if (!prefersHtml(request.headers.get("accept"))) {
          const text = JSON.stringify(wholeJson(pull, client, nowMs()));
          return textAnswer(text, head, { ...PARTS, headers: { vary: "Accept" } });
        }
        return await htmlAnswer(page, (shown) => shown.timeline({ pull, client }, nowMs()), head);
      },
    },
  }];
}

const NO_PULL = "Not Found: no pull has this id. larder keeps the last 200; /pulls lists them";

async function htmlAnswer(
  page: () => Promise<Page>,
  textOf: (page: Page) => string,
  head: boolean,
): Promise<Answer> {
  const shown = await page();
  const headers = { ...shown.headers, vary: "Accept" };
  return textAnswer(textOf(shown), head, { ...PARTS, type: "text/html; charset=utf-8", headers });
}

/** Names of clients as this one may read them: its own, and all if it may manage larder. */
export function shownClient(
  { caller, request }: Pick<Routed, "caller" | "request">,
  mayManage: boolean,
): (client: string) => string {
  const own = caller?.name ?? request.peer;
  return (client) => mayManage || client === own ? client : OTHER_CLIENT;
}

function pullJson(pull: Pull, client: string, nowMs: number) {
  const { hit, joined, ahead, fetched, absent } = pull.paths;
  return {
    id: pull.id,
    client,
    running: pull.isRunning,
    requests_under_way: pull.underWay,
    began_at: new Date(pull.beganAtMs).toISOString(),
    seconds: pull.ms / 1_000,
    waiting_seconds: pull.waitingMs / 1_000,
    fetching_seconds: pull.fetchingMs / 1_000,
    sending_seconds: pull.sendingMs / 1_000,
    client_seconds: pull.pauseMs / 1_000,
    waited_for: pull.upstreams.map((one) => ({
      upstream: one.host ?? null,
      paths: one.paths,
      asked_in_vain: one.inVain,
      seconds: one.waitedMs / 1_000,
      sent_paths: one.sentPaths,
      sending_seconds: one.sentMs / 1_000,
    })),
    name: pull.first ?? null,
    what: whatOf(pull),
    paths: hit + joined + ahead + fetched,
    ...{ hits: hit, joined, fetched_ahead: ahead, fetched, not_found: absent },
    bytes: pull.bytes,
    saved_bytes: pull.savedBytes,
    sentence: pullSentence(pullWords(pull, client, nowMs)),
  };
}

function wholeJson(pull: WholePull, client: string, nowMs: number) {
  return { ...pullJson(pull, client, nowMs), slowest: pull.slowest.map(pathJson) };
}

function pathJson({ name, result, bytes, narinfo, nar }: PullPath) {
  const hosts = [...nar?.upstreams ?? [], ...narinfo?.upstreams ?? []];
  return {
    name,
    result: result === "ahead" ? "fetched_ahead" : result,
    upstream: hosts.find(({ host }) => host !== undefined)?.host ?? null,
    bytes,
    narinfo: narinfo === undefined ? null : {
      at_seconds: narinfo.atMs / 1_000,
      waited_seconds: narinfo.waitedMs / 1_000,
      waited_for: waitsJson(narinfo),
    },
    nar: nar === undefined ? null : {
      at_seconds: nar.atMs / 1_000,
      waited_seconds: nar.waitedMs / 1_000,
      sending_seconds: nar.sentMs / 1_000,
      waited_for: waitsJson(nar),
    },
  };
}

function waitsJson({ upstreams }: PulledTimes) {
  return upstreams.filter(({ waitedMs }) => waitedMs > 0)
    .map(({ host, waitedMs }) => ({ upstream: host ?? null, seconds: waitedMs / 1_000 }));
}
