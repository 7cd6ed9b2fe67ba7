import denoJson from "../../deno.json" with { type: "json" };
import type { ReadTurns } from "../base/read_turns.ts";
import type { InFlight } from "../cache/fetch/transfer_progress.ts";
import type { Downloads } from "../cache/download/downloads.ts";
import { Explainer } from "../cache/explain/explainer.ts";
import type { KeptNars } from "../cache/kept/kept_nars.ts";
import type { PathRecord } from "../cache/nar/path_record.ts";
import type { NegativeCache } from "../cache/narinfo/negative_cache.ts";
import type { Planner } from "../cache/plan/planner.ts";
import type { StorePathNames } from "../cache/store_path_names.ts";
import type { Page, PageSource } from "../http/page/page.ts";
import type { Route } from "../http/routes/router.ts";
import { pageRoute, SIGN_IN_ROUTE } from "../http/routes/page.ts";
import { clientConfigRoute } from "../http/routes/client_config.ts";
import { explainRoute } from "../http/routes/explain.ts";
import { Searches } from "../http/routes/searches.ts";
import { pullRoutes } from "../http/routes/pulls.ts";
import { statsRoute } from "../http/routes/stats.ts";
import { type MemberFigureSources, MemberGatherer } from "../http/stats/gather_member.ts";
import { MemberReports } from "../http/stats/member_reports.ts";
import { gatherStats, type StatsQuery } from "../http/stats/gather_stats.ts";
import type { HistoryReader } from "../history/history.ts";
import type { Pulls } from "../history/pulls.ts";
import { clock } from "../runtime/current.ts";
import type { ActiveReads } from "../space/active_reads.ts";
import type { Space } from "../space/space.ts";
import type { NameFinder } from "../metadata/metadata_store.ts";
import type { NarName } from "../nix/nar_name.ts";
import { PinWatch } from "../pins/pin_watch.ts";
import type { PinReads } from "../pins/pin_reads.ts";
import type { LastAnswers } from "../upstream/last_answers.ts";
import type { NarRates } from "../upstream/pooled_upstream.ts";
import { MEMBER_STATES } from "../telemetry/instruments/operation_labels.ts";
import type { AskedUpstreams } from "../upstream/asked_upstreams.ts";
import type { UpstreamPool } from "../upstream/upstream_pool.ts";
import type { AppParts } from "./app_parts.ts";

/** How long the figures wait for names. A database that hangs takes longer. */
const NAME_WITHIN_MS = 1_000;

/** Sources of the page, beside the parts of the app. */
export interface PageSubjects {
  readonly upstreams: {
    readonly pool: UpstreamPool;
    readonly lastAnswers: LastAnswers;
    readonly rates: NarRates;
  };
  readonly transfers: {
    /** Downloads and pass-throughs. */
    readonly inFlight: InFlight;
    readonly uploads: InFlight;
    readonly downloads: Pick<Downloads, "backlog" | "progressOf">;
    /** Whom the downloads come from. */
    readonly waits: Pick<AskedUpstreams, "now">;
    readonly reads: Pick<ActiveReads, "sendCount" | "sends">;
  };
  readonly storage: {
    readonly space: Pick<Space, "budget">;
    readonly disk: { readonly freeBytes: number | undefined };
    readonly pins: PinReads;
    readonly pinnedBytes: () => number;
    readonly recompressedBytes: () => number;
  };
  readonly paths: {
    readonly kept: Pick<KeptNars, "canOpen">;
    readonly names: StorePathNames;
    readonly negative: NegativeCache;
    /** The answers of upstreams about each path. */
    readonly record: PathRecord;
  };
  readonly planner: Planner;
  readonly plans: ReadTurns;
  readonly history: HistoryReader;
  readonly pulls: Pulls;
  readonly isDraining: () => boolean;
}

export interface PageParts extends AsyncDisposable {
  readonly routes: readonly Route[];
  /** Call this after each pin and unpin. */
  pinsChanged(): void;
  /** Ends the searches that run, and refuses all others. */
  stopping(): void;
  /** Exchanges reports with the other members. Never rejects. */
  reportToMembers(): Promise<void>;
}

/** Wires `/` and `/stats` to their sources. */
export function buildPage(parts: AppParts, subjects: PageSubjects): PageParts {
  const { nowMs, stores: { metadata }, telemetry: { log, metrics, problems } } = parts;
  const { identity: { secretKey, usesTls }, upstream: { trustedKeys } } = parts;
  const { reachableUrl = (url: string) => Promise.resolve(url) } = parts.identity;
  const { upstreams, history, pulls, isDraining, paths: { names: known, kept, negative, record } } =
    subjects;
  const { space: { budget }, disk, pins: pinReads, ...figures } = subjects.storage;
  const { inFlight, uploads, downloads, waits, reads } = subjects.transfers;
  const pins = new PinWatch({ metadata, nowMs, log, closures: pinReads });
  const publicKey = secretKey?.publicKey.text;
  const shared = {
    process: {
      version: denoJson.version,
      publicKey,
      isPrefetching: parts.fetching.prefetch !== undefined,
      startedAtMs: nowMs(),
      nowMs,
    },
    ...{ metrics, upstreams },
    transfers: {
      ...{ downloads: inFlight, uploads, reads },
      backlog: () => downloads.backlog(),
      nameOf: async (narName: NarName) => {
        const name = known.of(narName);
        return typeof name === "string" ? name : await clock.within(name, NAME_WITHIN_MS);
      },
    },
  };
  const members = buildMembers(parts, { ...shared, problems }, isDraining);
  const reports = { problems, members: members ?? { list: () => [] } };
  const sources = {
    ...shared,
    history,
    storage: { ...figures, budget, disk, pins },
    reports,
  };
  const stats = (query: StatsQuery) => gatherStats(sources, query);
  // Without a signature of ours, clients have to trust the keys of the upstreams.
  const publicKeys = publicKey === undefined ? trustedKeys.map(({ text }) => text) : [publicKey];
  const page = loadedPage();
  const explainer = new Explainer({
    metadata,
    kept,
    pins: pinReads,
    keys: [...trustedKeys, ...parts.writes.uploads.keys],
    negative,
    record,
    ...{ downloads, waits },
    log,
    hasLimit: () => budget.limitBytes < Infinity,
  });
  const names: NameFinder = {
    async findNamed(text, countMax, signal) {
      const stored = await metadata.findNamed(text, countMax, signal);
      return stored.length > 0 ? stored : record.findNamed(text, countMax);
    },
  };
  const searches = new Searches({
    explainer,
    planner: subjects.planner,
    plans: subjects.plans,
    names,
  });
  return {
    routes: [
      statsRoute(stats),
      clientConfigRoute({ publicKeys, usesTls, reachableUrl }),
      explainRoute({ searches }),
      pageRoute({
        ...{ page, stats, searches, pulls, publicKeys, usesTls, reachableUrl },
        hasMetrics: parts.telemetry.hasMetricsRoute,
      }),
      ...pullRoutes({ pulls, page, nowMs }),
      SIGN_IN_ROUTE,
    ],
    pinsChanged: () => pins.changed(),
    stopping: () => searches[Symbol.dispose](),
    reportToMembers: async () => await members?.exchange(),
    async [Symbol.asyncDispose]() {
      searches[Symbol.dispose]();
      await members?.[Symbol.asyncDispose]();
      await pins[Symbol.asyncDispose]();
    },
  };
}

/** The page. Its modules load for its first visitor: most larders have none. */
function loadedPage(): () => Promise<Page> {
  const source = readPageSource();
  let page: Promise<Page> | undefined;
  const load = async () => new (await import("../http/page/page.ts")).Page(source);
  return () => page ??= load();
}

function buildMembers(
  { stores, nowMs, telemetry: { members, metrics, log } }: AppParts,
  sources: Omit<MemberFigureSources, "own">,
  isDraining: () => boolean,
): MemberReports | undefined {
  if (members === undefined) return undefined;
  const { board, isShared, ...own } = members;
  const gatherer = new MemberGatherer({ ...sources, own: { ...own, isDraining } });
  const status = () => gatherer.status();
  const self = stores.space.owner;
  const reports = new MemberReports({ board, self, isShared, status, nowMs, log });
  for (const state of MEMBER_STATES) {
    metrics.gauge("members", { state }, () => reports.count(state));
  }
  return reports;
}

/** Reads the files of the page; the executable embeds them. */
function readPageSource(): PageSource {
  return {
    template: read("page.html"),
    style: read("page.css"),
    script: read("page.js"),
  };
}

function read(name: string): string {
  return Deno.readTextFileSync(new URL(`../http/page/${name}`, import.meta.url));
}
