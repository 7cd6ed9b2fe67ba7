import settings from "../fixtures/ncps/settings.json" with { type: "json" };

/** A setting of ncps, as its help and its configuration keys spell it. */
export interface NcpsSetting {
  readonly flag: string;
  readonly kind: string;
  readonly repeatable?: boolean;
  readonly variable?: string;
  readonly key?: string;
  readonly default?: string;
}

/** Every setting of ncps 816f637. */
export const NCPS_SETTINGS: readonly NcpsSetting[] = settings;
