// The explanation of a label: the text with its words marked, what each word contributes, and the path in a label tree.

import { bar, counted, decimal, make, named, percent, signed } from "./dom.js";

const MOST_WORDS = 10;

export function explanationOf(found) {
  return [marked(found), legend(), make("div", { class: "columns" }, reasonsOf(found), pathOf(found.steps ?? []))];
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

function reasonsOf({ reasons, intercept, margin, score, steps = [] }) {
  const shown = reasons.slice(0, MOST_WORDS);
  const rest = margin - intercept - shown.reduce((sum, { contribution }) => sum + contribution, 0);
  const rows = shown.map(({ feature, contribution }) => ({ what: named(feature), contribution }));
  if (reasons.length > shown.length) rows.push({ what: "other words", contribution: rest, quiet: true });
  if (intercept) rows.push({ what: "intercept (no words)", contribution: intercept, quiet: true });
  const most = largest(shown);
  const result = Math.abs(margin - score) < 1e-6
    ? `Score: ${signed(margin)}.`
    : `Sum${steps.length > 1 ? " along the path" : ""}: ${signed(margin)}, which gives a score of ${decimal(score)}.`;
  return make(
    "section",
    {},
    make("h3", {}, "Contribution of each word"),
    reasons.length ? null : make("p", { class: "quiet" }, "No word of the text counts for or against this label."),
    make("table", { class: "words" }, make("tbody", {}, rows.map((row) => reasonRow(row, most)))),
    make("p", { class: "quiet" }, result),
  );
}

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
