/** Runs one call of a method, whose arguments it may look at. */
export type Around = <Value>(
  call: () => Promise<Value>,
  args: readonly unknown[],
) => Promise<Value>;

/**
 * The port with more around each call of `methods`, all of which return promises. Other members
 * stay as they are.
 */
export function around<Port extends object>(
  inner: Port,
  methods: Readonly<Partial<Record<keyof Port & string, Around>>>,
): Port {
  const wraps = new Map<PropertyKey, Around | undefined>(Object.entries(methods));
  // Wraps each method once, as every call goes through here.
  const made = new Map<PropertyKey, unknown>();
  return new Proxy(inner, {
    get(target, key) {
      const known = made.get(key);
      if (known !== undefined) return known;
      const value = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      const wrap = wraps.get(key);
      const method = wrap === undefined
        ? value.bind(target)
        : (...args: readonly unknown[]) => wrap(() => Reflect.apply(value, target, args), args);
      made.set(key, method);
      return method;
    },
  });
}
