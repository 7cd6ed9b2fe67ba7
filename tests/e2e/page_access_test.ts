import assert from "node:assert/strict";
import type { Tab } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { pageTest } from "../support/shown_page.ts";

/** The contrast that WCAG 2.2 wants at level AA: of text, and of outlines. */
const TEXT_CONTRAST_MIN = 4.5;
const OUTLINE_CONTRAST_MIN = 3;

/** Roles of the elements that a screen reader announces by name. */
const NAMED_ROLES = [
  ...["button", "link", "textbox", "radio", "progressbar", "image", "region", "heading", "main"],
];

/** Functions that the tests run in the page. */
const IN_PAGE = `
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3).map((channel) => {
      const part = channel / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const ground = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at);
      if (channels(backgroundColor)[3] !== 0) return backgroundColor;
    }
    return "rgb(255, 255, 255)";
  };
`;

const DETAILS = `document.querySelectorAll("details")`;

/** All controls, in the order of the page, by id or text. */
const CONTROLS = [
  ...["Now", "Packages", "History", "Use this cache"],
  ...["pulls-shown", "pull-ID", "all-pulls"],
  ...["remedy-of-upstreams", "show-members", "evict-now", "gib", "evict"],
  ...["query", "search", "pin-of-ROOT", "pins-unpin-ROOT", "End this protection"],
  ...["pin-path", "path", "pin"],
  ...["range-hour", "range-day", "range-week", "range-month", "values-shown", "values-table"],
  ...["use-shown", "use-conf", "lines-conf", "Copy"],
  ...["pause", "Figures as JSON", "Metrics"],
];

/** Those that a closed confirmation or fold hides. */
const IN_DETAILS: ReadonlySet<string> = new Set([
  ...["pull-ID", "all-pulls"],
  ...["values-table", "gib", "evict", "End this protection", "path", "pin"],
  ...["use-conf", "lines-conf", "Copy"],
]);

interface AxNode {
  readonly ignored: boolean;
  readonly role?: { readonly value: string };
  readonly name?: { readonly value: string };
}

pageTest("page: nothing of it is wider than a phone or a narrow window", async ({ tab }) => {
  for (const width of [320, 360, 768, 1280]) {
    await tab.resize(width, 740);
    await tab.read(`${DETAILS}.forEach((one) => one.open = true)`);
    const wide = await tab.read<string[]>(`
        [...document.querySelectorAll("body *")]
          .filter((one) => one.getBoundingClientRect().right > innerWidth)
          .filter((one) => one.parentElement.closest(".scroll") === null)
          .map((one) => one.outerHTML)
      `);
    assert.deepEqual(wide, [], `${width} px`);
    const scrolled = await tab.read("document.documentElement.scrollWidth");
    assert.equal(scrolled, width);
  }
});

pageTest("page: a problem's state is one word on one line, in any font", async ({ tab }) => {
  for (const font of ["Inter", "DejaVu Sans", "monospace"]) {
    await tab.read(`document.body.style.fontFamily = "${font}"`);
    for (const width of [320, 800, 1280]) {
      await tab.resize(width, 740);
      const lines = await tab.read<number[]>(`[...document.querySelectorAll(".problem .mark")].map(
        (mark) => mark.getBoundingClientRect().height / parseFloat(getComputedStyle(mark).lineHeight)
      )`);
      assert.ok(lines.length > 0);
      assert.ok(lines.every((count) => count < 1.5), `${font}, ${width} px: ${lines} lines`);
    }
  }
});

pageTest("page: every control is reached by keyboard, and is seen to be", async ({ tab }) => {
  for (const scheme of ["light", "dark"] as const) {
    await tab.prefer(scheme);
    await tab.read(`${DETAILS}.forEach((one) => one.open = false)`);
    assert.deepEqual(await walk(tab), CONTROLS.filter((one) => !IN_DETAILS.has(one)), scheme);
    await tab.read(`${DETAILS}.forEach((one) => one.open = true)`);
    assert.deepEqual(await walk(tab), CONTROLS, scheme);
  }
  const selectors = "a, button, textarea, summary, select, [tabindex], input:not([type=hidden])";
  const controls = `[...document.querySelectorAll("${selectors}")].filter((one) =>
    one.checkVisibility() && (one.type !== "radio" || one.checked))`;
  assert.equal(await tab.read(`${controls}.length`), CONTROLS.length, "there are no others");
  const small = await tab.read<string[]>(`
      [...document.querySelectorAll("button, summary, input:not([type=hidden], [type=radio])")]
        .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 44)
        .map((one) => one.outerHTML)
    `);
  assert.deepEqual(small, [], "large enough for a finger");
});

pageTest("page: a refresh takes the focus from nothing", async ({ tab }) => {
  const live = `[...document.querySelectorAll("[data-live]")].flatMap((part) =>
    [...part.querySelectorAll("a, button, input, summary, [tabindex]")])
      .filter((one) => one.checkVisibility())`;
  const names = await tab.read<string[]>(`${live}.map((one) => one.id || one.outerHTML)`);
  assert.ok(names.length >= 8, `${names}`);
  for (const [at, name] of names.entries()) {
    await tab.read(`{
      const one = ${live}[${at}];
      one.closest("[data-live]").append(document.createElement("mark"));
      one.focus();
      document.dispatchEvent(new Event("visibilitychange"));
    }`);
    await eventually("the part is new", async () => {
      return await tab.read("document.querySelector('mark') === null");
    });
    assert.equal(await tab.read("document.activeElement.id"), name);
  }
});

pageTest("page: no id is there twice, and all that needs a name has one", async ({ tab }) => {
  const ids = await tab.read<string[]>(
    `[...document.querySelectorAll("[id]")].map((o) => o.id)`,
  );
  assert.deepEqual(ids, [...new Set(ids)]);
  await tab.read(`document.querySelector(".fold").open = true`);
  const { nodes } = await tab.send("Accessibility.getFullAXTree") as {
    readonly nodes: readonly AxNode[];
  };
  const named = nodes.filter((node) => !node.ignored).flatMap(({ role, name }) =>
    NAMED_ROLES.includes(role?.value ?? "") ? [`${role?.value}: ${name?.value ?? ""}`] : []
  );
  assert.deepEqual(named.filter((one) => /: $/.test(one) && one !== "main: "), []);
  const regions = named.filter((one) => one.startsWith("region: "));
  assert.equal(regions.length, await tab.read("document.querySelectorAll('section').length"));
  for (
    const name of [
      "button: Copy",
      "button: Pause refreshing",
      "link: Figures as JSON",
      "region: Upstreams",
      "region: Status",
    ]
  ) assert.ok(named.includes(name), `${name} in ${named}`);
  assert.ok(named.some((one) => one.startsWith("progressbar: Download of long-")));
  const levels = await tab.read<string[]>(
    "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((h) => h.tagName)",
  );
  assert.deepEqual(levels.filter((level) => level === "H1").length, 1);
  const skipped = levels.filter((level, at) => level > `H${Number(levels[at - 1]?.[1] ?? 0) + 1}`);
  assert.deepEqual(skipped, [], `each level below the one before it, in ${levels}`);
  assert.equal(await tab.read("document.documentElement.lang"), "en");
});

pageTest("page: its text can be read in the light and in the dark", async ({ tab }) => {
  const grounds = [];
  for (const scheme of ["light", "dark"] as const) {
    await tab.prefer(scheme);
    const faint = await tab.read<string[]>(`{
        ${IN_PAGE}
        [...document.querySelectorAll("body *")].filter((one) =>
          [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "") &&
          !["SCRIPT", "NOSCRIPT"].includes(one.tagName) &&
          contrast(getComputedStyle(one).color, ground(one)) < ${TEXT_CONTRAST_MIN}
        ).map((one) => one.outerHTML);
      }`);
    assert.deepEqual(faint, [], scheme);
    grounds.push(await tab.read("getComputedStyle(document.body).backgroundColor"));
  }
  assert.notEqual(grounds[0], grounds[1]);
});

/** The ids of the elements that get the focus as Tab goes through the page, in order. */
async function walk(tab: Tab): Promise<readonly string[]> {
  const seen: string[] = [];
  // The browser goes on from where the focus was last: at the top of the page.
  await tab.read(`{
    const top = document.querySelector("h1");
    top.tabIndex = -1;
    top.focus();
    top.removeAttribute("tabindex");
    document.activeElement.blur();
    getSelection().removeAllRanges();
  }`);
  for (let count = 0; count < 40; count++) {
    await tab.press("Tab");
    const focused = await tab.read<{ name: string; outline: number } | null>(`{
      ${IN_PAGE}
      const one = document.activeElement;
      // A radio button is hidden: its label shows the focus.
      const shown = one.type === "radio" ? one.nextElementSibling : one;
      const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(shown);
      const isSeen = outlineStyle === "solid" && parseFloat(outlineWidth) >= 2;
      const id = one.id.replace(/(?<=^pin.*-)[0-9a-z]{32}$/, "ROOT")
        .replace(/(?<=^pull-)[0-9a-f]{8}-[0-9a-f]{4}$/, "ID");
      one === document.body ? null : {
        name: id || one.textContent.trim() || one.tagName.toLowerCase(),
        outline: isSeen ? contrast(outlineColor, ground(one.parentElement)) : 0,
      };
    }`);
    if (focused === null || seen.includes(focused.name)) break;
    assert.ok(focused.outline >= OUTLINE_CONTRAST_MIN, `${focused.name}: ${focused.outline}`);
    seen.push(focused.name);
  }
  return seen;
}
