import type { OptionTable, Values } from "./kinds/option.ts";
import { ACCESS_OPTIONS } from "./options/access.ts";
import { CACHE_OPTIONS } from "./options/cache.ts";
import { GENERAL_OPTIONS } from "./options/general.ts";
import { MEMBER_OPTIONS } from "./options/members.ts";
import { SERVER_OPTIONS } from "./options/server.ts";
import { STORAGE_OPTIONS } from "./options/storage.ts";
import { TELEMETRY_OPTIONS } from "./options/telemetry.ts";
import { UPSTREAM_OPTIONS } from "./options/upstream.ts";

/** All options of larder, each defined here only. */
export const OPTIONS = {
  ...GENERAL_OPTIONS,
  ...SERVER_OPTIONS,
  ...CACHE_OPTIONS,
  ...STORAGE_OPTIONS,
  ...MEMBER_OPTIONS,
  ...UPSTREAM_OPTIONS,
  ...ACCESS_OPTIONS,
  ...TELEMETRY_OPTIONS,
} as const satisfies OptionTable;

/** The resolved table: one property for each key. */
export type Settings = Values<typeof OPTIONS>;

/** Options under one title of the help text. */
export interface OptionGroup {
  readonly title: string;
  readonly options: OptionTable;
}

/** The same options in the groups and order of the help text. */
export const OPTION_GROUPS: readonly OptionGroup[] = [
  { title: "General", options: GENERAL_OPTIONS },
  { title: "Server", options: SERVER_OPTIONS },
  { title: "Cache", options: CACHE_OPTIONS },
  { title: "Storage", options: STORAGE_OPTIONS },
  { title: "Several machines", options: MEMBER_OPTIONS },
  { title: "Upstream", options: UPSTREAM_OPTIONS },
  { title: "Access", options: ACCESS_OPTIONS },
  { title: "Telemetry", options: TELEMETRY_OPTIONS },
];
