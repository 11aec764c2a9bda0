// The facts about a model; for missing ones, the command that records them.

import { bar, counted, decimal, make, percent, whole } from "./dom.js";

const MEANT = {
  P: "Precision",
  nDCG: "Ranking quality",
  PSP: "Precision, weighted for rare labels",
  R: "Recall",
  F1: "Harmonic mean of precision and recall",
  coverage: "Labels found at least once",
};

export function cardOf(model) {
  const { data, trained, decision, updates, metrics, audit } = model.card ?? {};
  const rows = model.takes_texts ? "Texts" : "Rows";
  return [
    section("Model", facts([
      ["Learner", model.kind],
      ["Labels", whole(model.n_labels)],
      ["Size", bytes(model.size_bytes)],
      ["Saved", when(model.saved_at)],
    ])),
    section("Training", data || trained ? trainingOf(data ?? {}, trained ?? {}, rows) : missing("longtail train")),
    ...(decision ? [section("Tags", decisionOf(decision))] : []),
    ...(model.corrections || updates?.corrections ? [section("Corrections", correctionsOf(model.corrections, updates))] : []),
    section("Quality", metrics ? qualityOf(metrics, rows) : missing("longtail evaluate MODEL TEST --card")),
    section("Audit", audit ? auditOf(audit) : missing("longtail audit MODEL TEST --card")),
  ];
}

// Any field of a card can be missing.
const section = (title, content) => make("section", { class: title.toLowerCase() }, make("h3", {}, title), content);

const missing = (command) => make("p", { class: "quiet" }, "Not recorded. Run ", make("code", {}, command), ".");

function facts(pairs) {
  const known = pairs.filter(([, value]) => value != null && value !== "");
  return make("dl", {}, known.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

const trainingOf = ({ source, rows }, { at, seconds, reason }, what) => facts([
  ["Data", source],
  [what, number(rows)],
  ["Trained", when(at)],
  ["Took", seconds == null ? null : duration(seconds)],
  ["Why this learner", reason?.replace(/(^|; )learner: /, "$1")],
]);

// A text counts once, however many of its tags were corrected.
const texts = (count) => (count == null ? null : counted(count, "text"));

function correctionsOf(kept, updates) {
  return [
    facts([["Learnt", texts(updates?.corrections)], ["Waiting", texts(kept?.waiting)]]),
    kept?.waiting ? make("p", { class: "quiet" }, "To learn what waits, run ", make("code", {}, "longtail update MODEL FILE"), ".") : null,
  ];
}

const decisionOf = ({ aim, threshold, n_rows: rows, precision, recall, f1, labels_per_row: tags }) => facts([
  ["Aim", aim],
  ["Given from probability", threshold == null ? null : decimal(threshold)],
  ["Precision on held-out rows", share(precision)],
  ["Recall", share(recall)],
  ["F1", share(f1)],
  ["Tags per row", tags == null ? null : tags.toFixed(1)],
  ["Held-out rows", number(rows)],
]);

const share = (value) => (value == null ? null : percent(value));

function qualityOf({ data, at, rows, metrics, groups }, what) {
  return [
    facts([["Measured on", data], [what, number(rows)], ["Measured", when(at)]]),
    metricTable(metrics ?? {}),
    bands(groups ?? []),
  ];
}

function metricTable(metrics) {
  const keys = Object.keys(metrics).map((key) => key.split("@")).filter(([name, k]) => Object.hasOwn(MEANT, name) && k > 0);
  const shown = Object.keys(MEANT).filter((name) => keys.some(([known]) => known === name));
  const ks = [...new Set(keys.map(([, k]) => Number(k)))].sort((a, b) => a - b);
  const cell = (value) => make("td", { class: "number" }, value == null ? "" : percent(value));
  return make(
    "table",
    { class: "metrics" },
    make("thead", {}, make(
      "tr",
      {},
      make("td", { class: "quiet" }, "For the best k tags"),
      ks.map((k) => make("th", { scope: "col", class: "number" }, `@${k}`)),
    )),
    make("tbody", {}, shown.map((name) => make(
      "tr",
      {},
      make("th", { scope: "row" }, MEANT[name], make("span", { class: "quiet" }, ` ${name}`)),
      ks.map((k) => cell(metrics[`${name}@${k}`])),
    ))),
  );
}

// Recall, because the precision of a band is limited by its share of the true labels.
function bands(groups) {
  const best = Object.keys(groups[0]?.metrics ?? {}).filter((key) => key.startsWith("R@")).at(-1);
  if (!best) return null;
  return make(
    "div",
    {},
    make("h4", {}, `Recall ${best.slice(1)} by number of training rows`),
    make("ul", { class: "bands" }, groups.map((group) => {
      const share = group.metrics?.[best];
      return make(
        "li",
        {},
        make("span", {}, trainingRows(group.train_counts ?? []), make("span", { class: "quiet" }, ` · ${counted(group.n_labels ?? 0, "label")}`)),
        make("span", { class: "number" }, share == null ? "not in the test set" : percent(share)),
        bar(share ?? 0),
      );
    })),
  );
}

function trainingRows([low = 0, high = 0]) {
  if (high === 0) return "not in training";
  return low === high ? counted(low, "row") : `${whole(low)} to ${whole(high)} rows`;
}

function auditOf(audit) {
  const { label_sets: sets, argmaxable: some, unargmaxable: never, undetermined } = audit;
  const found = sets === some
    ? `All ${counted(sets, "label set")} can be given`
    : `${whole(never)} of ${counted(sets, "label set")} can never be given, whatever the input`;
  const examples = (audit.examples ?? []).map(({ says }) => says).filter(Boolean).slice(0, 3);
  return [
    facts([
      ["Audited on", audit.data],
      ["Audited", when(audit.at)],
      ["Found", sets == null || never == null ? null : found],
      ["Undecided", undetermined ? whole(undetermined) : null],
    ]),
    ...[...(audit.reasons ?? []), ...examples].map((sentence) => make("p", { class: "quiet" }, sentence)),
  ];
}

const number = (value) => (value == null ? null : whole(value));

export function when(time) {
  const date = new Date(time ?? NaN);
  return isNaN(date) ? null : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

function duration(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function bytes(size) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let place = 0;
  for (; size >= 1000 && place < units.length - 1; place += 1) size /= 1000;
  return `${place && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[place]}`;
}
