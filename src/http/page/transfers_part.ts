import { counted, formatBytes, formatSpan } from "../../base/format_units.ts";
import type { Stats, TransfersStats, TransferStats } from "../stats/stats.ts";
import { transferWords } from "../stats/transfer_words.ts";
import { ago, formatNumber, formatPercent } from "./format.ts";
import { type Html, markup, type Part } from "./markup.ts";
import { type ListsLook, rows, type RowsLook } from "./rows.ts";

/** Running transfers: downloads, uploads, and stored files that clients receive. */
export function transfersPart(
  stats: Pick<Stats, "downloads" | "verification_backlog" | "uploads" | "sends" | "at">,
  look: ListsLook,
): Html {
  const { downloads, verification_backlog, uploads, sends, at } = stats;
  const count = downloads.count + verification_backlog.files + uploads.count + sends.count;
  if (count === 0) return markup`<p class="none">Nothing at the moment.</p>`;
  return markup`${
    list(downloads, { list: "downloads", ...look }, (one) =>
      transfer(one, { kind: "Download", towards: "to", at }))
  }${backlog(verification_backlog)}${
    uploads.count > 0 &&
    markup`<h3>Uploading now</h3>${
      list(
        uploads,
        { list: "uploads", ...look },
        (one) => transfer(one, { kind: "Upload", towards: "from", at }),
      )
    }`
  }${
    sends.count > 0 &&
    markup`<h3>Sending from the store</h3>${
      list(sends, { list: "sends", ...look }, (one) =>
        markup`<li><b>${one.name ?? one.nar}</b><span class="detail">to ${
          clientsOf(one)
        }</span></li>`)
    }`
  }`;
}

/** Files whose bytes are here, and neither stored nor evictable yet. */
function backlog({ files, bytes, seconds }: Stats["verification_backlog"]): Part {
  if (files === 0) return "";
  const many = files === 1 ? "1 file waits" : `${formatNumber(files)} files wait`;
  const facts = `${formatBytes(bytes)}, the oldest for ${formatSpan(seconds)}`;
  return markup`<p class="detail">${many} for verification: ${facts}</p>`;
}

function list<One>(
  { count, under_way }: { readonly count: number; readonly under_way: readonly One[] },
  look: ListsLook & Pick<RowsLook, "list">,
  show: (one: One) => Part,
): Part {
  return count > 0 && rows(under_way, { count, section: "now", ...look }, show);
}

interface TransferLabels {
  readonly kind: "Download" | "Upload";
  readonly towards: "to" | "from";
  readonly at: string;
}

function transfer(one: TransfersStats["under_way"][number], labels: TransferLabels): Html {
  const { received_bytes, file_bytes } = one;
  const name = one.name ?? one.nar;
  const part = file_bytes ? Math.min(1, received_bytes / file_bytes) : undefined;
  const clients = clientsOf(one);
  return markup`<li class="transfer"><b>${name}</b>${
    part !== undefined && markup`<span class="part">${formatPercent(part)}</span>`
  }<progress aria-label="${labels.kind} of ${name}" max="1"${
    part !== undefined && markup` value="${part}"`
  }></progress><span class="detail">${facts(one, labels.at)}</span>${
    clients !== "" && markup`<span class="detail clients">${labels.towards} ${clients}</span>`
  }</li>`;
}

function facts(one: TransferStats, at: string): Html {
  return markup`${transferWords(one).join(", ")}, began ${ago(one.started_at, at)}`;
}

function clientsOf({ clients, client_count }: Pick<TransferStats, "clients" | "client_count">) {
  if (clients.length === 0) return client_count === 0 ? "" : counted(client_count, "client");
  const hidden = client_count - clients.length;
  return clients.join(", ") + (hidden > 0 ? ` and ${formatNumber(hidden)} more` : "");
}
