/** True when a connection to the URL's host stood; false when it was refused or aborted. */
export async function dial(url: URL | string, signal: AbortSignal): Promise<boolean> {
  const { protocol, hostname: host, port: named } = new URL(url);
  const port = Number(named) || (protocol === "https:" ? 443 : 80);
  const hostname = host.replace(/^\[|\]$/g, "");
  try {
    const connection = await Deno.connect({ hostname, port, signal });
    connection.close();
    return true;
  } catch {
    // Refused, unknown or aborted: `fetch` reports the same, and better.
    return false;
  }
}
