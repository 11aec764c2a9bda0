// Why a label: the text with its words marked, what each word adds, and the path down a label tree.

import { bar, counted, decimal, make, named, percent, signed } from "./dom.js";

const MOST_WORDS = 10;

export function explanationOf(found) {
  return [marked(found), legend(), make("div", { class: "columns" }, wordsOf(found), pathOf(found.steps ?? []))];
}

function marked({ segments }) {
  const most = Math.max(...segments.map(({ adds }) => Math.abs(adds)), Number.MIN_VALUE);
  const box = make("p", { class: "marked", dir: "auto", tabindex: "0", role: "group", "aria-label": "The text, marked" });
  for (const { text, adds } of segments) box.append(adds ? mark(text, adds, most) : text);
  return box;
}

function mark(text, adds, most) {
  const element = make("mark", { class: kind(adds), title: `${text} ${signed(adds)}` }, text);
  element.style.setProperty("--strength", (Math.abs(adds) / most).toFixed(3));
  return element;
}

const legend = () => make(
  "p",
  { class: "legend quiet" },
  make("mark", { class: "for" }, "speaks for it"),
  make("mark", { class: "against" }, "speaks against it"),
  "the stronger the colour, the more",
);

const kind = (adds) => (adds < 0 ? "against" : "for");

function wordsOf({ words, intercept, margin, score, steps = [] }) {
  const shown = words.slice(0, MOST_WORDS);
  const rest = margin - intercept - shown.reduce((sum, { adds }) => sum + adds, 0);
  const rows = shown.map(({ word, adds }) => ({ what: named(word), adds }));
  if (words.length > shown.length) rows.push({ what: "other words", adds: rest, quiet: true });
  if (intercept) rows.push({ what: "without any word", adds: intercept, quiet: true });
  const most = Math.max(...shown.map(({ adds }) => Math.abs(adds)), Number.MIN_VALUE);
  const made = `${steps.length > 1 ? "along the path, whose steps make" : "which makes"} a score of ${decimal(score)}`;
  const sum = Math.abs(margin - score) < 1e-6 ? "the score" : made;
  return make(
    "section",
    {},
    make("h3", {}, "What the words add"),
    words.length ? null : make("p", { class: "quiet" }, "No word of the text speaks for this label or against it."),
    make("table", { class: "words" }, make("tbody", {}, rows.map((row) => wordRow(row, most)))),
    make("p", { class: "quiet" }, `Together ${signed(margin)}, ${sum}.`),
  );
}

function wordRow({ what, adds, quiet }, most) {
  return make(
    "tr",
    { class: quiet ? "quiet" : null },
    make("th", { scope: "row" }, what),
    make("td", { class: "bars" }, quiet ? null : bar(adds / most, `signed ${kind(adds)}`)),
    make("td", { class: "number" }, signed(adds)),
  );
}

function pathOf(steps) {
  // Where there is no tree, the only step is the label itself.
  if (steps.every((step) => step.n_labels === 1)) return null;
  const trees = [...new Set(steps.map(({ tree }) => tree))];
  return make(
    "section",
    {},
    make("h3", {}, "Path in the label tree"),
    trees.map((tree) => [
      trees.length > 1 ? make("h4", {}, `Tree ${tree}`) : null,
      make("ol", { class: "path" }, steps.filter((step) => step.tree === tree).map(stepItem)),
    ]).flat(),
  );
}

function stepItem({ to, n_labels: labels, probability }) {
  return make(
    "li",
    {},
    make("span", { class: "to" }, named(to), " ", labels > 1 ? make("span", { class: "quiet" }, `(${counted(labels, "label")})`) : null),
    make("span", { class: "number" }, percent(probability)),
    bar(probability),
  );
}
