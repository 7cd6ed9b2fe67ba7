import type { OptionTable } from "../src/config/kinds/option.ts";
import { spellingsIn } from "../src/config/sources/found.ts";

/** The part of the chart's schema that the options fill. */
const SETTINGS_REGEXP = /^ {4}"settings": \{\n[\s\S]*?^ {4}\}/m;

interface Schema {
  properties?: Record<string, Schema>;
  additionalProperties?: false;
  type?: "object";
}

/**
 * The chart's schema with the names below `settings`: each key of the configuration file. Values are
 * larder's to check.
 */
export function withSettings(schema: string, options: OptionTable): string {
  const settings = tableOf([...spellingsIn("key", options).keys()].map((key) => key.split(".")));
  const text = JSON.stringify(settings, null, 2).replaceAll("\n", "\n    ");
  return schema.replace(SETTINGS_REGEXP, () => `    "settings": ${text}`);
}

function tableOf(keys: readonly (readonly string[])[]): Schema {
  const properties: Record<string, Schema> = {};
  for (const name of [...new Set(keys.map(([first = ""]) => first))].sort()) {
    const rests = keys.filter(([first]) => first === name).map(([, ...rest]) => rest);
    const inner = rests.filter((rest) => rest.length > 0);
    // A key of ncps may be a value and a table.
    const isValue = inner.length < rests.length;
    const { type, ...table } = inner.length > 0 ? tableOf(inner) : {};
    properties[name] = type !== undefined && !isValue ? { type, ...table } : table;
  }
  return { type: "object", additionalProperties: false, properties };
}
