// Fields that find labels by part of their names: comboboxes with a list for the arrow keys.

import { counted, find, make, named } from "./dom.js";

const PAUSE = 120;
const MOST = 8;
const MOST_ALIKE = 50;
// Characters that no one sees, which come along when a name is pasted; the service refuses them.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

// `search(sought, limit)` returns labels, or undefined if a later search came; `explain` and `deny` take a name.
export function finder({ search, explain, deny }) {
  combobox(find("find"), find("found"), search, (label, shift) => (shift ? deny : explain)(label));
}

// A field that also takes names that no label has: Enter and the button take what was typed, unless an option was chosen.
export function adder({ search, add }) {
  const takeTyped = combobox(find("add"), find("addable"), search, add, true);
  find("add-typed").addEventListener("click", () => {
    find("add").focus();
    takeTyped();
  });
}

function combobox(field, list, search, choose, takesNew = false) {
  let timer = 0;
  let active = -1;

  async function look() {
    const typed = name();
    const labels = await search(field.value, MOST);
    if (!labels || document.activeElement !== field) return;
    list.replaceChildren(...labels.map(option));
    if (takesNew && typed && !labels.some(({ label }) => same(label, typed))) list.append(newOption(typed, labels.length));
    if (!list.children.length) list.append(make("li", { class: "quiet", role: "presentation" }, "No label name contains this."));
    open(true);
    activate(-1);
    list.scrollIntoView({ block: "nearest" });
  }

  const item = (label, place, ...content) => make(
    "li",
    { id: `${list.id}-${place}`, role: "option", "aria-selected": "false", title: label, onclick: () => take(label, false) },
    ...content,
  );

  const option = ({ label, count }, place) => item(
    label,
    place,
    named(label),
    count == null ? null : make("span", { class: "quiet" }, ` ${counted(count, "text")}`),
  );

  const newOption = (typed, place) => item(typed, place, make("span", { class: "quiet" }, "New tag "), named(typed));

  const options = () => [...list.querySelectorAll("[role=option]")];

  function open(shown) {
    list.hidden = !shown;
    field.setAttribute("aria-expanded", String(shown));
    if (!shown) activate(-1);
  }

  function activate(place) {
    active = place;
    options().forEach((entry, other) => entry.setAttribute("aria-selected", String(other === place)));
    if (place < 0) field.removeAttribute("aria-activedescendant");
    else {
      field.setAttribute("aria-activedescendant", `${list.id}-${place}`);
      options()[place].scrollIntoView({ block: "nearest" });
    }
  }

  function take(label, shift) {
    clearTimeout(timer);
    field.value = "";
    open(false);
    choose(label, shift);
  }

  const name = () => field.value.replace(UNSEEN, "").trim();

  // The label of that name in the model's spelling, or else a new one.
  async function takeTyped() {
    clearTimeout(timer);
    const typed = name();
    if (!typed) return;
    const labels = await search(typed, MOST_ALIKE);
    if (labels && name() === typed) take(labels.find(({ label }) => same(label, typed))?.label ?? typed, false);
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
    } else if (event.key === "Enter" && takesNew && active < 0) {
      event.preventDefault();
      // Until the name is added, nothing is saved without it.
      if (name()) event.stopPropagation();
      takeTyped();
    } else if (event.key === "Enter" && !list.hidden && options().length) {
      event.preventDefault();
      event.stopPropagation();
      take(options()[Math.max(active, 0)].title, event.shiftKey);
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
  return takeTyped;
}

const same = (one, other) => one.toLowerCase() === other.toLowerCase();
