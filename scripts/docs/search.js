// The search field of the site. Without scripts it stays hidden.
const area = document.querySelector("search");
const field = area.querySelector("input");
const list = area.querySelector("ol");
let loading;

area.hidden = false;
field.addEventListener("focus", load, { once: true });
field.addEventListener("input", async () => {
  const find = await load();
  const question = field.value.trim();
  const entries = find(question).map(entryOf);
  if (question !== "" && entries.length === 0) entries.push(nothing());
  list.replaceChildren(...entries);
});

/** Resolves to a finder. A page from a folder may load scripts, and no JSON. */
function load() {
  return loading ??= new Promise((resolve) => {
    for (const name of ["minisearch.js", "find.js", "sections.js"]) {
      const script = document.createElement("script");
      // One after the other: the last has all.
      script.async = false;
      script.src = name;
      if (name === "sections.js") {
        script.addEventListener("load", () => resolve(finderOf(sections)));
      }
      document.head.append(script);
    }
  });
}

function entryOf({ page, title, url, excerpt }) {
  const link = element("a", element("b", title === page ? page : `${page}: ${title}`));
  link.href = url;
  link.append(element("span", excerpt));
  return element("li", link);
}

function nothing() {
  const entry = element("li", "Nothing found");
  entry.className = "nothing";
  return entry;
}

function element(name, content) {
  const made = document.createElement(name);
  made.append(content);
  return made;
}
