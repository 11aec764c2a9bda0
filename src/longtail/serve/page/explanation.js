// The explanation of a label: the text with its words marked, what decided the score if the model has two stages, what
// each word contributes, and the path in a label tree.

import { bar, counted, decimal, make, named, percent, signed } from "./dom.js";

const MOST_WORDS = 10;
const MOST_EVIDENCE = 6;

export function explanationOf(found) {
  const parts = [evidenceOf(found), reasonsOf(found), pathOf(found.steps ?? [])];
  return [marked(found), legend(), make("div", { class: "columns" }, parts)];
}

function marked({ segments }) {
  const most = largest(segments);
  const box = make("p", { class: "marked", dir: "auto", tabindex: "0", role: "group", "aria-label": "The text, marked" });
  for (const { text, contribution } of segments) box.append(contribution ? mark(text, contribution, most) : text);
  return box;
}

function mark(text, contribution, most) {
  const element = make("mark", { class: kind(contribution), title: `${text} ${signed(contribution)}` }, text);
  element.style.setProperty("--strength", (Math.abs(contribution) / most).toFixed(3));
  return element;
}

const legend = () => make(
  "p",
  { class: "legend quiet" },
  make("mark", { class: "for" }, "for this label"),
  make("mark", { class: "against" }, "against this label"),
  "stronger colour: larger contribution",
);

const kind = (contribution) => (contribution < 0 ? "against" : "for");

const largest = (parts) => Math.max(...parts.map(({ contribution }) => Math.abs(contribution)), Number.MIN_VALUE);

const sum = (parts) => parts.reduce((total, { contribution }) => total + contribution, 0);

function evidenceOf({ evidence = [], score }) {
  if (!evidence.length) return null;
  const start = evidence.filter(({ value }) => value == null);
  const moves = joined(evidence.filter(({ value }) => value != null));
  moves.sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  const shown = moves.slice(0, MOST_EVIDENCE).filter(({ contribution }) => contribution);
  const rows = shown.map((each) => ({ what: inWords(each), contribution: each.contribution }));
  if (moves.length > shown.length) rows.push({ what: "other evidence", contribution: sum(moves) - sum(shown), quiet: true });
  rows.push(...start.map(({ name, contribution }) => ({ what: `start: ${name}`, contribution, quiet: true })));
  const result = `Sum: ${signed(sum(evidence))}, the log-odds of the score of ${decimal(score)}.`;
  return make("section", { class: "evidence" }, make("h3", {}, "What decided the score"), barTable(rows, largest(shown)), quietly(result));
}

// The text of a label is read in several ways, such as all words or their beginnings: one line for all of them.
function joined(evidence) {
  const found = new Map();
  for (const { name, value, contribution } of evidence) {
    const what = name.replace(/, reading \d+/, "");
    const before = found.get(what);
    found.set(what, { name: what, value: before?.value ?? value, contribution: contribution + (before?.contribution ?? 0) });
  }
  return [...found.values()];
}

// Other values, such as logarithms and ranks counted from 0, would need explanations of their own.
function inWords({ name, value }) {
  if (name.startsWith("share ")) return `${name}: ${percent(value)}`;
  return name.startsWith("similarity ") ? `${name}: ${decimal(value)}` : name;
}

function reasonsOf(found) {
  const { reasons, evidence = [], intercept, margin, score, steps = [], n_rows: known } = found;
  if (known === 0 && !steps.length) return sharedOf(found);
  const shown = reasons.slice(0, MOST_WORDS);
  const rest = margin - intercept - sum(shown);
  const rows = shown.map(({ feature, contribution }) => ({ what: named(feature), contribution }));
  if (reasons.length > shown.length) rows.push({ what: "other words", contribution: rest, quiet: true });
  if (intercept) rows.push({ what: "intercept (no words)", contribution: intercept, quiet: true });
  const result = Math.abs(margin - score) < 1e-6
    ? `Score: ${signed(margin)}.`
    : `Sum${steps.length > 1 ? " along the path" : ""}: ${signed(margin)}.${evidence.length ? "" : ` Score: ${decimal(score)}.`}`;
  return make(
    "section",
    {},
    make("h3", {}, `Contribution of each word${evidence.length ? " in the first learner" : ""}`),
    reasons.length ? null : quietly("No word of the text counts for or against this label."),
    barTable(rows, largest(shown)),
    quietly(result),
  );
}

// The words of a label without training rows.
function sharedOf({ reasons }) {
  const shown = reasons.slice(0, MOST_WORDS);
  const occur = shown.length ? "Words of its name or description occur in the text." : "No word of its name or description occurs in the text.";
  return make(
    "section",
    {},
    make("h3", {}, "Words of the label in the text"),
    make("p", {}, `No training text has this label. ${occur}`),
    barTable(shown.map(({ feature, contribution }) => ({ what: named(feature), contribution })), largest(shown)),
  );
}

const quietly = (sentence) => make("p", { class: "quiet" }, sentence);

const barTable = (rows, most) => make("table", { class: "words" }, make("tbody", {}, rows.map((row) => reasonRow(row, most))));

function reasonRow({ what, contribution, quiet }, most) {
  return make(
    "tr",
    { class: quiet ? "quiet" : null },
    make("th", { scope: "row" }, what),
    make("td", { class: "bars" }, quiet ? null : bar(contribution / most, `signed ${kind(contribution)}`)),
    make("td", { class: "number" }, signed(contribution)),
  );
}

function pathOf(steps) {
  // Without a tree, the only step is the label itself.
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

function stepItem({ name, n_labels: labels, frequent, probability }) {
  const inside = labels > 1 ? make("span", { class: "quiet", title: frequent.join(", ") }, `(${counted(labels, "label")})`) : null;
  return make(
    "li",
    {},
    make("span", { class: "to" }, named(name), " ", inside),
    make("span", { class: "number" }, percent(probability)),
    bar(probability),
  );
}
