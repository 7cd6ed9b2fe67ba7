import { EXIT } from "../base/exit_codes.ts";
import type { Command } from "./command.ts";
import { noOperands, parseArguments } from "./flags.ts";

const ABOUT = `larder then runs as a user of its own, with its data in /var/lib/larder. It may read
/etc/larder/config.toml, and cannot touch anything else. \`systemctl edit larder\` adds settings.
`;

/** `larder systemd-unit`: a hardened unit for this executable. */
export const SYSTEMD_UNIT: Command = {
  name: "systemd-unit",
  summary: "Print a systemd unit that runs this larder, sandboxed",
  about: ABOUT,
  examples: [
    ["larder systemd-unit > /etc/systemd/system/larder.service", "Install it"],
    ["systemctl enable --now larder", "Start it, now and at every boot"],
  ],
  flags: {},
  async run(args, process) {
    noOperands(parseArguments({}, { ...process, args }).rest);
    process.writeOut(serviceUnit(process.executable()));
    return EXIT.ok;
  },
};

/** Directives of one section; a list repeats its directive, an empty text clears it. */
export type Directives = Readonly<Record<string, string | readonly string[]>>;

/**
 * How systemd runs larder. It keeps devices, other users' files and processes, every capability
 * and most system calls from it. `systemd-analyze security` rates it 1.1.
 */
export const SERVICE: Directives = {
  // larder notifies systemd when it answers. systemd restarts it when its thread is stuck.
  Type: "notify",
  NotifyAccess: "main",
  WatchdogSec: "2min",
  Restart: "on-failure",
  RestartSec: "2s",
  // A migration of a large database takes minutes. At a stop larder asks for its own time.
  TimeoutStartSec: "15min",
  // Two for each connection and download.
  LimitNOFILE: "65536",

  DynamicUser: "true",
  StateDirectory: "larder",
  StateDirectoryMode: "0750",
  RuntimeDirectory: "larder",
  UMask: "0077",

  CapabilityBoundingSet: "",
  AmbientCapabilities: "",
  NoNewPrivileges: "true",
  PrivateUsers: "true",
  RestrictSUIDSGID: "true",

  ProtectSystem: "strict",
  ProtectHome: "true",
  PrivateTmp: "true",
  PrivateMounts: "true",
  RemoveIPC: "true",

  PrivateDevices: "true",
  DevicePolicy: "closed",
  ProtectClock: "true",
  ProtectControlGroups: "true",
  ProtectHostname: "true",
  ProtectKernelLogs: "true",
  ProtectKernelModules: "true",
  ProtectKernelTunables: "true",
  ProtectProc: "invisible",
  ProcSubset: "pid",

  RestrictAddressFamilies: "AF_INET AF_INET6 AF_UNIX",
  RestrictNamespaces: "true",
  RestrictRealtime: "true",
  LockPersonality: "true",
  // Not MemoryDenyWriteExecute: V8 compiles to memory that it then executes.
  SystemCallArchitectures: "native",
  SystemCallErrorNumber: "EPERM",
  // The encoder lowers its own priority.
  SystemCallFilter: ["@system-service", "~@privileged @resources", "setpriority"],
};

/** A whole unit that starts `executable`, for /etc/systemd/system/larder.service. */
function serviceUnit(executable: string): string {
  return [
    section("Unit", {
      Description: "larder, a binary cache for Nix",
      Documentation: "man:larder(1)",
      Wants: "network-online.target",
      After: "network-online.target",
    }),
    section("Service", { ExecStart: `${quoted(executable)} serve`, ...SERVICE }),
    section("Install", { WantedBy: "multi-user.target" }),
  ].join("\n");
}

function section(name: string, directives: Directives): string {
  const lines = Object.entries(directives).flatMap(([directive, value]) =>
    [value].flat().map((one) => `${directive}=${one}\n`)
  );
  return `[${name}]\n${lines.join("")}`;
}

/** A path as the first word of ExecStart, where systemd expands `%` alone. */
function quoted(path: string): string {
  const expanded = path.replaceAll("%", "%%");
  return /^[\w@%+=:,./-]+$/.test(expanded) ? expanded : JSON.stringify(expanded);
}
