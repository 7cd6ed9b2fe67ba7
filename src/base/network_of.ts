const GROUPS = 8;
const NETWORK_GROUPS = 4;

/**
 * The address, or the first 64 bits of an IPv6 one: a client usually owns all addresses below.
 */
export function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  const [head = "", tail] = address.split("::");
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: GROUPS - first.length - last.length }, () => "0");
  return [...first, ...zeros, ...last].slice(0, NETWORK_GROUPS).join(":");
}
