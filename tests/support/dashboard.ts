/** The dashboard of the documents, as Grafana imports it. */

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  /** `noValue` stands for missing figures. */
  readonly fieldConfig?: { readonly defaults: { readonly noValue?: string } };
  readonly links?: readonly { readonly url: string }[];
  readonly targets?: readonly { readonly expr: string }[];
}

export interface Dashboard {
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
}

export const DASHBOARD: Dashboard = JSON.parse(
  Deno.readTextFileSync(new URL("../../docs/grafana/larder.json", import.meta.url)),
);

/** Its panels with figures, without the headings. */
export const PANELS = DASHBOARD.panels.filter(({ type }) => type !== "row");

/** An expression as Grafana sends it, for all jobs and instances. */
export function asSent(expr: string, rateInterval: string): string {
  return expr.replaceAll("$__rate_interval", rateInterval)
    .replaceAll("$job", ".*").replaceAll("$instance", ".*");
}
