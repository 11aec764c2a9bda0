// Corrections of the tags of one text: made, taken back, and then sent. They stay with the text they were made for.

import { counted, find, icon, make, named } from "./dom.js";
import { Refused } from "./service.js";

export const CHECK = "M3 8.5l3.5 3.5L13 4.5";
export const CROSS = "M4 4l8 8M12 4l-8 8";
const PLUS = "M8 3v10M3 8h10";

const KINDS = {
  accepted: { icon: CHECK, done: "Accepted", is: " is right" },
  rejected: { icon: CROSS, done: "Rejected", is: " is wrong" },
  added: { icon: PLUS, done: "Added", is: " was missing" },
};
const MOST_KEPT = 100;

function beginning(text) {
  const letters = [...text.trim()];
  return letters.length > 30 ? `${letters.slice(0, 30).join("").trim()} …` : letters.join("");
}

// `now()` returns the text and the name of the model; `send(body)` the answer, undefined, or throws; `changed` redraws
// the tags; `saved` is called after each correction that was kept.
export function corrections({ now, send, changed, saved }) {
  const NONE = { text: "", model: "", marks: new Map() };
  let made = NONE;
  let before = [];
  let sending = false;
  let spokenFor = "";
  // What was sent for each text, so that its tags show it.
  const sent = new Map();

  const key = ({ text, model }) => JSON.stringify([model, text]);
  const isStale = () => made.marks.size > 0 && key(made) !== key(now());

  // How the label was corrected for the text as it is now: accepted, rejected, added or undefined.
  const kindOf = (label) => (isStale() ? undefined : made.marks.get(label)) ?? sent.get(key(now()))?.get(label);

  // Correct a label, or take the correction back if it is there already.
  function mark(label, kind) {
    if (sending || !now().text.trim()) return;
    const dropped = isStale() ? ` ${count()} of the earlier text dropped; Undo brings them back.` : "";
    const marks = isStale() ? new Map() : new Map(made.marks);
    const isSaved = sent.get(key(now()))?.get(label) === kind;
    if (isSaved && !marks.has(label)) {
      show(`Saved already: ${label}${KINDS[kind].is}.`);
      return;
    }
    const back = marks.get(label) === kind;
    marks.delete(label);
    if (!back && !isSaved) marks.set(label, kind);
    become({ ...now(), marks }, (back ? `Taken back: ${label}.` : `${KINDS[kind].done}: ${label}.`) + dropped);
  }

  function become(next, says) {
    before.push(made);
    made = next;
    show(says);
  }

  function undo() {
    made = before.pop() ?? NONE;
    show("Undone.");
  }

  const count = () => counted(made.marks.size, "correction");

  function show(says = "", isError = false) {
    const stale = isStale();
    const some = made.marks.size > 0;
    const focused = document.activeElement;
    const chips = find("corrections");
    const place = [...chips.children].findIndex((item) => item.contains(focused));
    chips.replaceChildren(...[...made.marks].map(chip));
    chips.hidden = !some;
    find("corrections-stale").hidden = !stale;
    const otherText = made.text !== now().text;
    const note = `You made these corrections for ${otherText ? `an earlier text, “${beginning(made.text)}”` : `the model ${made.model}`}.`;
    if (find("corrections-whose").textContent !== note) find("corrections-whose").textContent = note;
    find("corrections-keep").textContent = `Move them to this ${otherText ? "text" : "model"}`;
    find("corrections-actions").hidden = !some && !before.length;
    const whose = !stale ? "" : otherText ? " of the earlier text" : ` of ${made.model}`;
    find("corrections-save").textContent = sending ? "Saving …" : `Save ${some ? count() : "corrections"}${whose}`;
    find("corrections-save").disabled = sending || !some;
    find("corrections-undo").disabled = sending || !before.length;
    find("corrections-discard").hidden = !some;
    find("corrections-discard").disabled = find("corrections-keep").disabled = sending;
    const rest = some && !isError && !sending ? ` ${count()}, not saved yet.` : "";
    const known = [...(sent.get(key(now())) ?? [])];
    find("corrections-saved").hidden = !known.length;
    find("corrections-saved").replaceChildren("Saved for this text: ", ...known.flatMap(savedPart));
    const status = find("corrections-status");
    if (says || spokenFor !== key(now())) status.textContent = says && says + rest;
    spokenFor = key(now());
    status.classList.toggle("error", isError);
    if (place >= 0) (chips.children[Math.min(place, chips.children.length - 1)]?.firstChild ?? find("corrections-title")).focus();
    else if (focused?.disabled || (focused && focused !== document.body && !focused.checkVisibility())) find("corrections-title").focus();
    changed();
  }

  // A tag that was added by mistake is not among the tags above, where it could be rejected.
  const savedPart = ([label, kind], at) => [
    at ? ", " : "",
    named(label),
    KINDS[kind].is,
    ...(kind === "added" && !made.marks.has(label) ? [" ", rejectButton(label)] : []),
  ];

  const rejectButton = (label) => make(
    "button",
    { type: "button", class: "plain", "aria-label": `Reject: ${label}`, disabled: sending, onclick: () => mark(label, "rejected") },
    "Reject",
  );

  const chip = ([label, kind]) => make(
    "li",
    {},
    make(
      "button",
      {
        type: "button",
        class: `chip ${kind}`,
        "aria-label": `Take back: ${KINDS[kind].done.toLowerCase()} ${label}`,
        title: label,
        disabled: sending,
        onclick: () => {
          const marks = new Map(made.marks);
          marks.delete(label);
          become({ ...made, marks }, `Taken back: ${label}.`);
        },
      },
      icon(KINDS[kind].icon),
      make("span", {}, named(label)),
      icon(CROSS),
    ),
  );

  async function save() {
    if (sending || !made.marks.size) return;
    const { text, model, marks } = made;
    const lists = { accepted: [], rejected: [], added: [] };
    for (const [label, kind] of marks) lists[kind].push(label);
    sending = true;
    show();
    let why = "the service did not answer.";
    try {
      const answer = await send({ text, model, ...lists });
      if (answer) why = "";
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      why = error.message;
    } finally {
      sending = false;
    }
    if (why) {
      show(`Not saved: ${why}`, true);
      return;
    }
    const done = `Saved ${count()}. The model learns from them when it is updated.`;
    const known = sent.get(key(made)) ?? new Map();
    for (const [label, kind] of marks) known.set(label, kind);
    sent.set(key(made), known);
    if (sent.size > MOST_KEPT) sent.delete(sent.keys().next().value);
    made = NONE;
    before = [];
    show(done);
    saved(model);
  }

  find("corrections-save").addEventListener("click", save);
  find("corrections-undo").addEventListener("click", undo);
  find("corrections-discard").addEventListener("click", () => become(NONE, `Discarded ${count()}.`));
  find("corrections-keep").addEventListener("click", () => become({ ...made, ...now() }, "Moved."));
  addEventListener("beforeunload", (event) => made.marks.size && event.preventDefault());

  // Say what happens while a correction is sent.
  function tell(message) {
    if (message) find("corrections-status").textContent = message;
  }

  return { kindOf, mark, save, undo, show, tell };
}
