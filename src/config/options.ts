import type { OptionTable, Values } from "./kinds/option.ts";
import { CACHE_OPTIONS } from "./options/cache.ts";
import { GENERAL_OPTIONS } from "./options/general.ts";
import { SERVER_OPTIONS } from "./options/server.ts";
import { STORAGE_OPTIONS } from "./options/storage.ts";
import { TELEMETRY_OPTIONS } from "./options/telemetry.ts";
import { UPSTREAM_OPTIONS } from "./options/upstream.ts";

/** Every option of larder: the one place where any of them is defined. */
export const OPTIONS = {
  ...GENERAL_OPTIONS,
  ...SERVER_OPTIONS,
  ...CACHE_OPTIONS,
  ...STORAGE_OPTIONS,
  ...UPSTREAM_OPTIONS,
  ...TELEMETRY_OPTIONS,
} as const satisfies OptionTable;

/** What `resolveSettings` makes of the table: one property a key. */
export type Settings = Values<typeof OPTIONS>;

/** Rows that help shows under one title. */
export interface OptionGroup {
  readonly title: string;
  readonly options: OptionTable;
}

/** The same rows in the groups in which they are shown. */
export const OPTION_GROUPS: readonly OptionGroup[] = [
  { title: "General", options: GENERAL_OPTIONS },
  { title: "Server", options: SERVER_OPTIONS },
  { title: "Cache", options: CACHE_OPTIONS },
  { title: "Storage", options: STORAGE_OPTIONS },
  { title: "Upstream", options: UPSTREAM_OPTIONS },
  { title: "Telemetry", options: TELEMETRY_OPTIONS },
];
