import { EXIT } from "../base/exit_codes.ts";
import type { Command } from "./command.ts";
import { noOperands, parseArguments } from "./flags.ts";
import { serviceUnit } from "./service_unit.ts";

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
