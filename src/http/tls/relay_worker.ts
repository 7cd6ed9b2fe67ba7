// The Worker of the relay between HTTPS clients and the TLS listener.
import { messageOf } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";
import { Relay } from "./relay.ts";
import type { FromRelayWorker, ToRelayWorker } from "./relay_messages.ts";
import { workerScope } from "../../base/worker_scope.ts";

const scope = workerScope<ToRelayWorker, FromRelayWorker>();

interface Open {
  readonly listener: Deno.TcpListener;
  readonly relay: Relay;
}

let open: Open | undefined;

scope.onmessage = ({ data }) => {
  if (data.type === "listen") return start(data);
  if (open === undefined) return;
  const { listener, relay } = open;
  switch (data.type) {
    case "known":
      return relay.known(data.link);
    case "secured":
      return relay.secured(data.link);
    case "innerClosed":
      return relay.innerClosed(data.link);
    case "abort":
      return relay.abort(data.link);
    case "switch":
      return void relay.switchTo(data.inner).then(() => scope.postMessage({ type: "switched" }));
    case "stop":
      listener.close();
      return void relay.ended().then(() => scope.postMessage({ type: "over" }));
  }
};

function start(order: ToRelayWorker & { type: "listen" }): void {
  const { place, inner, limits, proxyRanges, sweepEveryMs } = order;
  try {
    const listener = Deno.listen({ ...place });
    const relay = new Relay(inner, {
      nowMs: () => clock.nowMs(),
      closed: (reason) => scope.postMessage({ type: "closed", reason }),
      connected: (link, client) => scope.postMessage({ type: "connected", link, client }),
      disconnected: (link) => scope.postMessage({ type: "disconnected", link }),
      limits,
      proxyRanges,
      sweepEveryMs,
    });
    open = { listener, relay };
    void relay.serve(listener);
    const { hostname, port } = listener.addr;
    scope.postMessage({ type: "listening", place: { hostname, port } });
  } catch (error) {
    const name = error instanceof Error ? error.name : "Error";
    scope.postMessage({ type: "failed", name, message: messageOf(error) });
  }
}
