import { prefersHtml } from "../message/accept.ts";
import { textAnswer } from "../message/answer.ts";
import { ownUrl } from "../page/own_url.ts";
import type { Page } from "../page/page.ts";
import type { Route } from "./router.ts";
import type { Stats } from "../stats/stats.ts";

export interface PageRouteDeps {
  readonly page: Page;
  readonly stats: () => Promise<Stats>;
  /** The keys for the client's `trusted-public-keys`. */
  readonly publicKeys: readonly string[];
  readonly usesTls: boolean;
}

/** The page for clients that prefer HTML, `/stats` for all others. */
export function pageRoute({ page, stats, publicKeys, usesTls }: PageRouteDeps): Route {
  const vary = "Accept";
  const ok = { status: 200, lifetime: "never" } as const;
  return {
    name: "/",
    path: "/",
    audience: "own-names",
    methods: {
      async GET({ request, head }) {
        const figures = await stats();
        if (!prefersHtml(request.headers.get("accept"))) {
          const parts = { ...ok, type: "application/json", headers: { vary } };
          return textAnswer(JSON.stringify(figures), head, parts);
        }
        const url = ownUrl(request.headers, usesTls);
        const html = page.render({ url, publicKeys, stats: figures });
        const headers = { ...page.headers, vary };
        return textAnswer(html, head, { ...ok, type: "text/html; charset=utf-8", headers });
      },
    },
  };
}
