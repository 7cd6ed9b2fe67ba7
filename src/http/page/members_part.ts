import { counted, formatBytes, formatSpan } from "../../base/format_units.ts";
import type { MemberDownload } from "../stats/member_status.ts";
import type { MemberStats, Stats } from "../stats/stats.ts";
import { ago, formatNumber, formatPercent } from "./format.ts";
import { type Tone, toneIcon } from "./icons.ts";
import { type Html, markup, type Part } from "./markup.ts";
import { type ListsLook, rows } from "./rows.ts";

const TONES: Readonly<Record<MemberStats["state"], Tone>> = {
  running: "good",
  draining: "fair",
  gone: "bad",
  left: "idle",
};

/** The page counts further downloads of a member, and does not show them. */
const DOWNLOADS_SHOWN = 5;

/**
 * The larders of this storage, those that do not run first: a section of its own, or nothing where
 * there is only this one.
 */
export function membersPart({ members, at }: Stats, lists: ListsLook): Part {
  const troubled = members.filter(({ state }) => state !== "running");
  const others = members.filter(({ state }) => state === "running");
  const look = {
    ...{ count: members.length, section: "members", list: "members", ...lists },
    ...{ inSight: troubled.length, allAre: "running" },
  };
  return members.length > 0 &&
    markup`<section aria-labelledby="members-title"><h2 id="members-title">Members</h2><div>
${rows([...troubled, ...others], look, (one) => member(one, at))}</div></section>`;
}

function member(one: MemberStats, at: string): Html {
  const { id, host, is_self, state, version, url, downloads, reported_at } = one;
  const hidden = downloads.count - Math.min(downloads.under_way.length, DOWNLOADS_SHOWN);
  const isGone = state === "gone" || state === "left";
  return markup`<li><span class="mark">${toneIcon(TONES[state])}${state}</span> <b>${
    host || id
  }</b>${is_self && " (this one)"}<span class="detail">larder ${version || "of another version"}${
    url !== null && `, ${url}`
  }${isGone ? markup`, last report ${ago(reported_at, at)}` : upFor(one, at)}</span>${
    !isGone &&
    markup`<span class="detail">${facts(one).join(", ")}</span>${
      downloads.under_way.slice(0, DOWNLOADS_SHOWN).map(download)
    }${hidden > 0 && markup`<span class="detail">and ${formatNumber(hidden)} more</span>`}`
  }</li>`;
}

function upFor({ started_at }: MemberStats, at: string): string {
  if (started_at === null) return "";
  return `, up for ${formatSpan((Date.parse(at) - Date.parse(started_at)) / 1_000)}`;
}

function facts({ requests_per_second, hit_ratio, upstreams, problems, downloads }: MemberStats) {
  const { up, down } = upstreams;
  return [
    ...requests_per_second === null ? [] : [`${formatNumber(requests_per_second)} requests/s`],
    ...hit_ratio === null ? [] : [`${formatPercent(hit_ratio)} hits`],
    `${formatNumber(up)} of ${counted(up + down, "upstream")} up`,
    ...problems === 0 ? [] : [counted(problems, "problem")],
    ...downloads.count === 0 ? [] : [counted(downloads.count, "download")],
  ];
}

function download({ name, nar, received_bytes, file_bytes }: MemberDownload): Html {
  const whole = file_bytes === null ? "" : ` of ${formatBytes(file_bytes)}`;
  return markup`<span class="detail">${name ?? nar}: ${formatBytes(received_bytes)}${whole}</span>`;
}
