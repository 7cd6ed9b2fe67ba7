import {
  Answer,
  lineAnswer,
  prefersHtml,
  queryIn,
  RETRY_AFTER,
  statusAnswer,
  textAnswer,
} from "../message/message.ts";
import type { Pulls } from "../../history/pulls.ts";
import type { Page } from "../page/page.ts";
import { PULLS_SHOWN } from "../page/pulls_part.ts";
import type { StatsQuery } from "../stats/gather_stats.ts";
import type { Stats } from "../stats/stats.ts";
import { calledUrl, type ClientConfigDeps } from "./client_config.ts";
import { waiterOf } from "./explain.ts";
import { shownClient } from "./pulls.ts";
import { pathListAllowance, pathListIn } from "./plan.ts";
import type { Route, Routed } from "./router.ts";
import type { Searches } from "./searches.ts";
import { statsJson, statsQueryIn } from "./stats.ts";
import { unpinnedIn } from "./page_actions.ts";
import { wholeNumber } from "../../base/plain_number.ts";

export interface PageRouteDeps extends ClientConfigDeps {
  readonly page: () => Promise<Page>;
  readonly stats: (query: StatsQuery) => Promise<Stats>;
  readonly searches: Pick<Searches, "findToShow">;
  readonly pulls: Pick<Pulls, "recent">;
  /** True if larder answers `/metrics`. */
  readonly hasMetrics: boolean;
}

/** The page for clients that prefer HTML, `/stats` for all others. */
export function pageRoute(deps: PageRouteDeps): Route {
  const { page, stats, searches, pulls, publicKeys, usesTls, reachableUrl, hasMetrics } = deps;
  const allowance = pathListAllowance();
  const vary = "Accept";
  const ok = { status: 200, lifetime: "never" } as const;
  return {
    name: "/",
    path: "/",
    audience: "own-names",
    methods: {
      async GET(routed) {
        const { request, head } = routed;
        if (prefersHtml(request.headers.get("accept"))) {
          return await show(routed, new URLSearchParams(queryIn(request.url)).get("q") ?? "");
        }
        const listsClients = await routed.mayManage();
        const figures = await stats({ ...statsQueryIn(routed), listsClients });
        const parts = { ...ok, type: "application/json", headers: { vary } };
        return textAnswer(statsJson(figures), head, parts);
      },
      // The same for the form of the search, whose list of paths is too long for a query.
      async POST(routed) {
        const { request } = routed;
        if (request.headers.get("content-type") !== "application/x-www-form-urlencoded") {
          return lineAnswer(400, "expected the search of the page: a form with the field q");
        }
        const body = await pathListIn(request, allowance);
        if (body instanceof Answer) return body;
        using _share = body.share;
        const form = new URLSearchParams(new TextDecoder().decode(body.bytes));
        return await show(routed, form.get("q") ?? "");
      },
    },
  };

  async function show(routed: Routed, query: string): Promise<Answer> {
    const { request, head } = routed;
    const mayManage = await routed.mayManage();
    const isToShow = true;
    const given = new URLSearchParams(queryIn(request.url));
    const isWhole = given.has("all");
    const pinsFrom = isWhole ? wholeNumber(given.get("pins")) ?? 0 : 0;
    const figures = await stats({
      ...{ ...statsQueryIn(routed), isToShow, listsClients: mayManage, pinsFrom },
    });
    const url = await reachableUrl(calledUrl(request.headers, usesTls));
    const found = await searches.findToShow(query, waiterOf(request));
    const shown = await page();
    const look = { isWhole, pinsFrom, unpinned: unpinnedIn(given), mayManage, hasMetrics };
    const recent = (await pulls.recent()).slice(0, isWhole ? undefined : PULLS_SHOWN);
    const clientOf = shownClient(routed, mayManage);
    const listed = recent.map((pull) => ({ pull, client: clientOf(pull.client) }));
    const facts = { url, publicKeys, stats: figures, found, pulls: listed };
    const html = shown.render({ ...facts, ...look });
    const isBusy = found.failure === "busy";
    const headers = { ...shown.headers, vary, ...isBusy ? RETRY_AFTER : {} };
    const status = isBusy ? 503 : found.failure === "too-long" ? 400 : 200;
    return textAnswer(html, head, { ...ok, status, type: "text/html; charset=utf-8", headers });
  }
}

/**
 * Where the page sends those who may pin, so that their browser asks for a token and sends it with
 * each further request. Its path is beside the page's: browsers send a token below the place alone
 * that asked for it.
 */
export const SIGN_IN_ROUTE: Route = {
  name: "/sign-in",
  path: "/sign-in",
  audience: "own-names",
  asksForToken: true,
  methods: { GET: ({ head }) => statusAnswer(303, head, { location: "./" }) },
};
