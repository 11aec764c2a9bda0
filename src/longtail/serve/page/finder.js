// The field that finds labels by part of their names: a combobox with a list for the arrow keys.

import { counted, find, make, named } from "./dom.js";

const PAUSE = 120;
const MOST = 8;

// `search(sought, limit)` returns labels, or undefined if a later search came; `explain` and `deny` take a name.
export function finder({ search, explain, deny }) {
  const field = find("find");
  const list = find("found");
  let timer = 0;
  let active = -1;

  async function look() {
    const labels = await search(field.value, MOST);
    if (!labels || document.activeElement !== field) return;
    list.replaceChildren(...labels.map(option));
    if (!labels.length) list.append(make("li", { class: "quiet", role: "presentation" }, "No label name contains this."));
    open(true);
    activate(-1);
    list.scrollIntoView({ block: "nearest" });
  }

  const option = ({ label, count }, place) => make(
    "li",
    { id: `found-${place}`, role: "option", "aria-selected": "false", title: label, onclick: () => choose(place, false) },
    named(label),
    count == null ? null : make("span", { class: "quiet" }, ` ${counted(count, "text")}`),
  );

  const options = () => [...list.querySelectorAll("[role=option]")];

  function open(shown) {
    list.hidden = !shown;
    field.setAttribute("aria-expanded", String(shown));
    if (!shown) activate(-1);
  }

  function activate(place) {
    active = place;
    options().forEach((item, other) => item.setAttribute("aria-selected", String(other === place)));
    if (place < 0) field.removeAttribute("aria-activedescendant");
    else {
      field.setAttribute("aria-activedescendant", `found-${place}`);
      options()[place].scrollIntoView({ block: "nearest" });
    }
  }

  function choose(place, leaveOut) {
    const label = options()[place].title;
    field.value = "";
    open(false);
    (leaveOut ? deny : explain)(label);
  }

  function step(by) {
    const last = options().length - 1;
    if (last < 0) return;
    const next = active + by;
    activate(next > last ? 0 : next < 0 ? last : next);
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  });
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) look();
      else step(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && !list.hidden && options().length) {
      event.preventDefault();
      choose(Math.max(active, 0), event.shiftKey);
    } else if (event.key === "Escape" && !list.hidden) {
      // The same key closes the explanation; each press closes one thing.
      event.stopPropagation();
      open(false);
    }
  });
  // Pressing an option must not move the focus, which would close the list before the click.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  field.addEventListener("blur", () => {
    clearTimeout(timer);
    open(false);
  });
}
