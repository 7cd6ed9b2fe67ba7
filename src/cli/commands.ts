import { ANALYTICS } from "./analytics.ts";
import { CLIENT_CONFIG } from "./client_config.ts";
import type { Command } from "./command.ts";
import { completionCommand } from "./completion.ts";
import { CONFIG } from "./config.ts";
import { DOCTOR } from "./doctor.ts";
import { EXPLAIN } from "./explain.ts";
import { EXPORT } from "./export.ts";
import { FSCK } from "./fsck.ts";
import { GC } from "./gc.ts";
import { IMPORT } from "./import.ts";
import { manCommand } from "./man.ts";
import { MIGRATE } from "./migrate.ts";
import { PIN, UNPIN } from "./pin.ts";
import { PINS } from "./pins.ts";
import { PLAN } from "./plan.ts";
import { PULLS } from "./pulls.ts";
import { SERVE } from "./serve.ts";
import { STATUS } from "./status.ts";
import { SYSTEMD_UNIT } from "./systemd_unit.ts";
import { TOKEN } from "./token.ts";
import { VERIFY } from "./verify.ts";
import { VERSION } from "./version.ts";
import { WARM } from "./warm.ts";

/** All commands, in the order of the help text. */
export const COMMANDS: readonly Command[] = [
  SERVE,
  CONFIG,
  CLIENT_CONFIG,
  STATUS,
  EXPLAIN,
  PLAN,
  PULLS,
  WARM,
  PIN,
  UNPIN,
  PINS,
  VERIFY,
  GC,
  TOKEN,
  DOCTOR,
  FSCK,
  IMPORT,
  EXPORT,
  MIGRATE,
  ANALYTICS,
  SYSTEMD_UNIT,
  completionCommand(() => COMMANDS),
  manCommand(() => COMMANDS),
  VERSION,
];
