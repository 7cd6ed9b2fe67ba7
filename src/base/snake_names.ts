/** The same JSON value with all its names in `snake_case`. */
export function snakeNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeNames);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [snakeCase(name), snakeNames(one)]),
  );
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
