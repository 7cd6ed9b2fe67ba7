import { listenAddress } from "../kinds/listen_address.ts";
import type { OptionTable } from "../option.ts";

/** Where and how clients reach larder. */
export const SERVER_OPTIONS = {
  "server.addr": {
    kind: listenAddress,
    default: { kind: "tcp", port: 8501 },
    help: "Where to listen: :PORT, HOST:PORT or unix:PATH",
    details: "Without a host it is every address of the machine. Port 0 takes any free port.",
  },
} as const satisfies OptionTable;
