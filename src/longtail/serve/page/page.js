// The page: a text, its tags, and their explanations. `state` holds everything; the URL holds nothing.

import { cardOf, when } from "./card.js";
import { CHECK, CROSS, corrections } from "./corrections.js";
import { bar, counted, decimal, find, icon, make, named, setBar, toldApart } from "./dom.js";
import { explanationOf } from "./explanation.js";
import { adder, finder } from "./finder.js";
import { Lane, Refused } from "./service.js";

const PAUSE = 150;
const LONGEST_PAUSE = 450;
const PAUSE_BETWEEN_VERSIONS = 15_000;
const KEYS = { a: "accepted", r: "rejected" };
const NO_ENTRY = "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M3.5 3.5l9 9";

// The examples fit only models of this corpus; `longtail train` and `longtail demo` give it these names.
const EMBEDDED_CORPUS = /^python-api, |NumPy, SciPy and scikit-learn/;
const SENTENCES = [
  "fit a straight line through noisy points",
  "find the minimum of a function of several variables",
  "remove noise from an image with a median filter",
];

// `found` are the tags that the service sent, down to a low cut-off; `tags` are those shown.
const state = { models: [], model: null, found: null, tags: [], open: null, cutoff: null };
const deniedOf = new Map();
const text = find("text");
const list = find("tags");

const messages = new Map();
const lane = (name) => new Lane((message) => tell(name, message));
const lanes = {
  models: lane("models"),
  tags: lane("tags"),
  explanation: lane("explanation"),
  labels: lane("labels"),
  feedback: new Lane((message) => correcting.tell(message)),
  versions: new Lane(() => {}),
};

const correcting = corrections({
  now: () => ({ text: text.value, model: state.model?.name ?? "" }),
  send: (body) => lanes.feedback.ask("v1/feedback", body),
  changed: markRows,
  saved: () => checkVersion(),
});
// Whether the service keeps corrections.
const corrects = () => state.model?.corrections != null;

function tell(name, message, isError = false) {
  messages.set(name, { message, isError });
  const shown = [...messages.values()].find((entry) => entry.message);
  const status = find("status");
  if (status.textContent !== (shown?.message ?? "")) status.textContent = shown?.message ?? "";
  status.classList.toggle("error", shown?.isError ?? false);
}

// An answer; undefined if it is not needed any more, or if the service refused and the reader has seen why.
async function ask(name, path, body) {
  try {
    return await lanes[name].ask(path, body);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    tell(name, error.message, true);
    messages.get(name).code = error.code;
    return undefined;
  }
}

const denied = () => deniedOf.get(state.model.name) ?? new Set();

async function begin() {
  const answer = await ask("models", "v1/models");
  if (!answer) return;
  state.models = answer.models;
  find("model").replaceChildren(...state.models.map(({ name }) => make("option", { value: name }, name)));
  find("model-choice").hidden = state.models.length < 2;
  choose(state.models[0]);
}

function choose(model) {
  state.model = model;
  state.cutoff = null;
  close();
  find("news").hidden = true;
  list.replaceChildren();
  describe(model);
  if (model.takes_texts) invite(model);
  showDenied();
  refresh();
}

function describe(model) {
  const facts = [model.name, counted(model.n_labels, "label")].slice(state.models.length > 1 ? 1 : 0);
  find("model-facts").replaceChildren(...facts.map((fact) => make("span", {}, named(fact))));
  find("card-sections").replaceChildren(...cardOf(model));
  text.hidden = find("tagging").hidden = !model.takes_texts;
  find("no-text").hidden = model.takes_texts;
  for (const hint of document.querySelectorAll(".correcting")) hint.hidden = !corrects();
}

// The service can have taken a new version of the model since the page was opened.
async function checkVersion() {
  let answer;
  try {
    answer = await lanes.versions.ask("v1/models");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  const found = answer?.models.find(({ name }) => name === state.model.name);
  if (!found || JSON.stringify(found) === JSON.stringify(state.model)) return;
  const isNew = found.version !== state.model.version;
  state.models.splice(0, state.models.length, ...answer.models);
  state.model = found;
  describe(found);
  if (!isNew) return;
  find("news").hidden = false;
  find("news").firstElementChild.textContent = `The model has a new version, saved ${when(found.saved_at)}. The tags are those of the new version.`;
  refresh();
}

async function invite(model) {
  const sentences = EMBEDDED_CORPUS.test(model.card?.data?.source) ? SENTENCES : [];
  find("examples").hidden = !sentences.length;
  find("examples").lastElementChild.replaceChildren(
    ...sentences.map((sentence) => make("li", {}, make("button", { type: "button", onclick: () => write(sentence) }, sentence))),
  );
  find("frequent").replaceChildren();
  const answer = await ask("labels", labelsPath({ limit: 5 }));
  if (!answer?.labels.length || model !== state.model) return;
  const names = answer.labels.flatMap(({ label }, place) => (place ? [", ", named(label)] : [named(label)]));
  const isPart = model.n_labels > answer.labels.length;
  find("frequent").replaceChildren(`The model knows ${counted(model.n_labels, "label")}${isPart ? ". The most frequent" : ""}: `, ...names);
}

const labelsPath = (query) => `v1/labels?${new URLSearchParams({ ...query, model: state.model.name })}`;

// Labels whose names begin with `sought`, then labels that contain it; undefined if a later search came.
async function search(sought, limit) {
  const first = (await ask("labels", labelsPath({ prefix: sought, limit })))?.labels;
  if (!first || !sought || first.length === limit) return first;
  const more = (await ask("labels", labelsPath({ contains: sought, limit })))?.labels;
  const known = new Set(first.map(({ label }) => label));
  return more && [...first, ...more.filter(({ label }) => !known.has(label))].slice(0, limit);
}

function write(sentence) {
  text.value = sentence;
  text.focus();
  refresh();
}

let timer = 0;
let waitingSince = 0;

function soon() {
  clearTimeout(timer);
  waitingSince ||= performance.now();
  const longest = LONGEST_PAUSE - (performance.now() - waitingSince);
  timer = setTimeout(refresh, Math.max(0, Math.min(PAUSE, longest)));
}

async function refresh() {
  clearTimeout(timer);
  waitingSince = 0;
  find("clear").hidden = !text.value || text.hidden;
  if (state.model) correcting.show();
  else {
    begin();
    return;
  }
  if (!state.model.takes_texts || !text.value.trim()) {
    lanes.tags.stop();
    show(null);
    explain();
    return;
  }
  list.setAttribute("aria-busy", "true");
  const body = { text: text.value, model: state.model.name, ...wanted(), deny: [...denied()] };
  tell("tags", "");
  const answer = await ask("tags", "v1/tag", body);
  if (!answer) {
    const { isError, code } = messages.get("tags");
    if (code === "unknown_label" && denied().size) includeAll();
    else if (isError) show([]);
    return;
  }
  show(answer.results[0].tags);
  explain();
  if (answer.version !== state.model.version) checkVersion();
}

// Whether the cut-off decides how many tags are shown: the model has learned one, and no number is asked for.
const cutsOff = () => find("k").value === "auto" && state.model.threshold !== null;

function wanted() {
  if (find("k").value !== "auto") return { k: Number(find("k").value) };
  return cutsOff() ? { k: "auto", threshold: lowest() } : { k: "auto" };
}

// The lowest score of a tag that the slider or the rule of the model can show.
const lowest = () => (state.model.always_one ? 0 : Math.min(Number(find("cutoff").min), state.model.threshold));

const cutoff = () => state.cutoff ?? state.model.threshold;

function likely(tags) {
  if (!cutsOff()) return tags;
  const always = state.cutoff === null && state.model.always_one;
  return tags.filter(({ score }, place) => score >= cutoff() || (always && place === 0));
}

function showCutoff() {
  find("cutoff-line").hidden = !state.model || !cutsOff();
  if (find("cutoff-line").hidden) return;
  find("cutoff").value = cutoff();
  find("cutoff").setAttribute("aria-valuetext", decimal(cutoff()));
  find("cutoff-value").textContent = decimal(cutoff());
  find("cutoff-reset").hidden = state.cutoff === null;
}

// Show the tags that are likely enough; null means that there is no text.
function show(found) {
  state.found = found;
  showCutoff();
  const tags = found && likely(found);
  state.tags = tags ?? [];
  list.setAttribute("aria-busy", "false");
  const refused = messages.get("tags")?.isError ?? false;
  find("invitation").hidden = tags !== null;
  list.hidden = find("copying").hidden = !state.tags.length;
  find("correcting").hidden = tags === null || refused || !corrects();
  find("nothing").hidden = tags === null || refused || tags.length > 0;
  find("nothing").textContent = found?.length && !state.tags.length
    ? toldApart(found[0].score, cutoff(), (best, least) => `No tag reaches the cut-off of ${least}. The best one has ${best}.`)
    : denied().size
    ? "No other label has a score for this text."
    : "No label has a score for this text. The model may not know any of its words.";
  find("spoken").textContent = state.tags.length ? `${counted(tags.length, "tag")}, first ${tags[0].label}` : "";
  keepingFocus(() => {
    const rows = new Map([...list.children].map((row) => [row.label, row]));
    const best = Math.max(1, ...state.tags.map(({ score }) => score));
    list.replaceChildren(...state.tags.map((tag) => updated(rows.get(tag.label) ?? rowOf(tag.label), tag, best)));
  });
  correcting.show();
}

function rowOf(label) {
  const row = make(
    "li",
    {},
    make(
      "button",
      { type: "button", class: "tag", "aria-controls": "explanation", onclick: () => toggle(label) },
      make("span", { class: "name", title: label }, named(label)),
      make("span", { class: "number" }),
      bar(0),
    ),
    ...(corrects()
      ? [
          rowButton("accept", `Accept: ${label}`, "Right", CHECK, () => correcting.mark(label, "accepted")),
          rowButton("reject", `Reject: ${label}`, "Wrong", CROSS, () => correcting.mark(label, "rejected")),
        ]
      : [rowButton("deny", `Exclude: ${label}`, "Exclude", NO_ENTRY, () => deny(label))]),
  );
  row.label = label;
  return row;
}

const rowButton = (kind, says, title, picture, onclick) => make("button", { type: "button", class: kind, "aria-label": says, title, onclick }, icon(picture));

// Show on each row how it was corrected.
function markRows() {
  if (!corrects()) return;
  for (const row of list.children) {
    const kind = correcting.kindOf(row.label) ?? "";
    row.dataset.mark = kind;
    row.querySelector(".accept").setAttribute("aria-pressed", String(kind === "accepted" || kind === "added"));
    row.querySelector(".reject").setAttribute("aria-pressed", String(kind === "rejected"));
  }
}

function updated(row, { label, score }, best) {
  row.querySelector(".number").textContent = decimal(score);
  row.querySelector(".tag").setAttribute("aria-expanded", String(state.open === label));
  setBar(row.querySelector(".bar"), Math.max(0, score) / best);
  return row;
}

// Rows move when scores change; the keyboard focus stays on its row, or at its place if the row is gone.
function keepingFocus(change) {
  const focused = document.activeElement;
  const place = [...list.children].findIndex((row) => row.contains(focused));
  change();
  if (place < 0 || focused === document.activeElement) return;
  if (focused.isConnected) focused.focus();
  else (list.children[Math.min(place, list.children.length - 1)]?.querySelector(".tag") ?? text).focus();
}

function toggle(label) {
  if (state.open === label) close();
  else open(label);
}

async function open(label) {
  state.open = label;
  find("explained").replaceChildren(...named(label).childNodes);
  find("reasons").replaceChildren();
  find("explanation").hidden = false;
  markOpen();
  await explain();
  if (state.open === label) find("explanation").scrollIntoView({ block: "nearest", behavior: stillness() ? "auto" : "smooth" });
}

const stillness = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function close() {
  const wasInside = find("explanation").contains(document.activeElement);
  const row = [...list.children].find(({ label }) => label === state.open);
  state.open = null;
  lanes.explanation.stop();
  find("explanation").hidden = true;
  markOpen();
  if (wasInside) (row?.querySelector(".tag") ?? text).focus();
}

function markOpen() {
  for (const row of list.children) {
    row.querySelector(".tag").setAttribute("aria-expanded", String(row.label === state.open));
  }
  const isDenied = state.open !== null && denied().has(state.open);
  find("explained-deny").textContent = isDenied ? "Include again" : "Exclude";
}

async function explain() {
  if (state.open === null) return;
  const reasons = find("reasons");
  if (!text.value.trim()) {
    lanes.explanation.stop();
    reasons.replaceChildren(make("p", { class: "quiet" }, "Write a text to see an explanation."));
    return;
  }
  reasons.setAttribute("aria-busy", "true");
  tell("explanation", "");
  const body = { text: text.value, labels: [state.open], model: state.model.name };
  const answer = await ask("explanation", "v1/explain", body);
  if (answer) {
    reasons.replaceChildren(...explanationOf(answer.explanations[0]));
    reasons.setAttribute("aria-busy", "false");
  } else if (messages.get("explanation").isError) {
    const why = messages.get("explanation").message;
    tell("explanation", "");
    reasons.replaceChildren(make("p", { class: "quiet", role: "alert" }, why));
    reasons.setAttribute("aria-busy", "false");
  }
}

function deny(label) {
  deniedOf.set(state.model.name, denied().add(label));
  if (state.open === label) close();
  // Remove it at once, before the service answers.
  show(state.found && state.found.filter((tag) => tag.label !== label));
  find("nothing").hidden = true;
  showDenied();
  refresh();
}

function allow(labels) {
  for (const label of labels) denied().delete(label);
  showDenied();
  markOpen();
  refresh();
}

// A new version of the model can lack a label that was excluded, and would refuse every request.
function includeAll() {
  allow([...denied()]);
  tell("denied", "The model no longer has one of the labels that you excluded, so all labels are included again.");
  setTimeout(() => tell("denied", ""), 10_000);
}

function showDenied() {
  find("denied").hidden = !denied().size;
  find("allow-all").hidden = denied().size < 2;
  const chip = (label) => make(
    "li",
    {},
    make(
      "button",
      { type: "button", class: "chip", "aria-label": `Include again: ${label}`, title: label, onclick: () => allow([label]) },
      make("span", {}, named(label)),
      icon("M4 4l8 8M12 4l-8 8"),
    ),
  );
  const chips = find("denied-labels");
  const place = [...chips.children].findIndex((item) => item.contains(document.activeElement));
  chips.replaceChildren(...[...denied()].map(chip));
  if (place >= 0) (chips.children[Math.min(place, chips.children.length - 1)]?.firstChild ?? text).focus();
}

async function copy(content, what) {
  try {
    await navigator.clipboard.writeText(content);
  } catch {
    // Browsers deny the clipboard to pages over plain HTTP from another machine.
    const field = make("textarea", { class: "unseen" });
    const focused = document.activeElement;
    field.value = content;
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    focused?.focus();
    if (!copied) return tell("copy", "The browser does not allow this page to copy.", true);
  }
  tell("copy", `Copied ${counted(state.tags.length, "tag")} as ${what}.`);
  setTimeout(() => tell("copy", ""), 2500);
}

text.addEventListener("input", soon);
find("clear").addEventListener("click", () => write(""));
find("k").addEventListener("change", refresh);
find("cutoff").addEventListener("input", () => {
  state.cutoff = Number(find("cutoff").value);
  show(state.found);
});
find("cutoff-reset").addEventListener("click", () => {
  state.cutoff = null;
  show(state.found);
  find("cutoff").focus();
});
find("model").addEventListener("change", (event) => choose(state.models[event.target.selectedIndex]));
find("explanation-close").addEventListener("click", close);
find("explained-deny").addEventListener("click", () => {
  if (denied().has(state.open)) allow([state.open]);
  else deny(state.open);
});
find("allow-all").addEventListener("click", () => allow([...denied()]));
find("copy-text").addEventListener("click", () => copy(state.tags.map(({ label, score }) => `${label}\t${score}\n`).join(""), "text"));
find("copy-json").addEventListener("click", () => copy(JSON.stringify(state.tags, null, 2), "JSON"));
find("help-open").addEventListener("click", () => find("help").showModal());
find("help-close").addEventListener("click", () => find("help").close());

list.addEventListener("keydown", (event) => {
  const rows = [...list.children];
  const place = rows.findIndex((row) => row.contains(event.target));
  const next = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (rows[next]) {
    event.preventDefault();
    rows[next].querySelector(".tag").focus();
  } else if ((event.key === "Delete" || event.key === "Backspace") && place >= 0) {
    event.preventDefault();
    deny(rows[place].label);
  } else if (KEYS[event.key] && corrects() && place >= 0 && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    correcting.mark(rows[place].label, KEYS[event.key]);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && corrects() && !document.querySelector("dialog[open]")) correcting.save();
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && state.open !== null) close();
  else if (!event.target.closest("input, textarea, select")) {
    if (event.key === "/") text.focus();
    else if (event.key === "?") find("help").showModal();
    else return;
    event.preventDefault();
  }
});

const theme = document.documentElement.dataset;
for (const choice of document.querySelectorAll("#theme input")) {
  choice.checked = choice.value === (theme.theme ?? "system");
  choice.addEventListener("change", () => {
    if (choice.value === "system") delete theme.theme;
    else theme.theme = choice.value;
    try {
      localStorage.setItem("longtail-theme", choice.value);
    } catch {
      // The choice holds until the page is closed.
    }
  });
}

finder({
  search: async (sought, limit) => state.model && search(sought, limit),
  explain: open,
  deny,
});

adder({
  search: async (sought, limit) => state.model && search(sought, limit),
  add: (label) => {
    // A label that is shown already, and so is no longer missing, is right.
    const kind = state.tags.some((tag) => tag.label === label) ? "accepted" : "added";
    if (correcting.kindOf(label) !== kind) correcting.mark(label, kind);
  },
});
find("news-close").addEventListener("click", () => {
  find("news").hidden = true;
  text.focus();
});

const checkVersionIfSeen = () => state.model && !document.hidden && checkVersion();
setInterval(checkVersionIfSeen, PAUSE_BETWEEN_VERSIONS);
document.addEventListener("visibilitychange", checkVersionIfSeen);

// On a phone, the focus would open the keyboard over half of the page.
if (matchMedia("(pointer: fine)").matches) text.focus();
begin();
