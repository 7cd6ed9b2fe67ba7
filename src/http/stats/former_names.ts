/** The names of version 1 beside those of version 2. They go in the release after next. */
const FORMER_NAMES: Readonly<Record<string, string>> = {
  started_at: "startedAt",
  uptime_seconds: "uptimeSeconds",
  public_key: "publicKey",
  hit_ratio: "hitRatio",
  served_bytes: "servedBytes",
  upstream_bytes: "upstreamBytes",
  saved_bytes: "savedBytes",
  used_bytes: "usedBytes",
  reserved_bytes: "reservedBytes",
  pinned_bytes: "pinnedBytes",
  limit_bytes: "limitBytes",
  evicted_bytes: "evictedBytes",
  evicted_entries: "evictedEntries",
  is_up: "isUp",
  last_answer: "lastAnswer",
  under_way: "underWay",
  received_bytes: "receivedBytes",
  file_bytes: "fileBytes",
  client_count: "clientCount",
  counted_at: "countedAt",
  pinned_at: "pinnedAt",
  first_at: "firstAt",
  last_at: "lastAt",
  file_size: "fileSize",
  busy_bytes: "busyBytes",
  hint: "remedy",
};

/** Groups that version 1 had not. */
const NEW_GROUPS: ReadonlySet<string> = new Set([
  "verdict",
  "lifetime",
  "history",
  "sends",
  "verification_backlog",
  "last_error",
  "members",
]);

/** The same record, in which each field has its former name too. */
export function withFormerNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withFormerNames);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, given]) => {
      if (NEW_GROUPS.has(name)) return [[name, given]];
      const field = withFormerNames(given);
      const former = FORMER_NAMES[name];
      return former === undefined ? [[name, field]] : [[name, field], [former, field]];
    }),
  );
}
