// What is known of a model, and for what is not, the command that finds it out.

import { bar, counted, make, percent, whole } from "./dom.js";

const IN_ORDER = ["P", "nDCG", "PSP", "R", "F1", "coverage"];
const MEANT = {
  P: "precision",
  nDCG: "ranking quality",
  PSP: "precision, rare labels counting more",
  R: "recall",
  F1: "F1",
  coverage: "labels ever found",
};

export function cardOf(model) {
  const card = model.card ?? {};
  return [
    section("Model", facts([
      ["Learner", model.kind],
      ["Labels", whole(model.n_labels)],
      ["Size", bytes(model.size_bytes)],
      ["Saved", when(model.saved_at)],
    ])),
    section("Training", trainingOf(card) ?? missing("longtail train FILE --out MODEL")),
    section("Quality", card.metrics ? qualityOf(card.metrics) : missing("longtail evaluate MODEL TEST --keep")),
    section("Audit", card.audit ? auditOf(card.audit) : missing("longtail audit MODEL TEST --keep")),
  ];
}

// Any field of a card may be missing.
const section = (title, content) => make("section", {}, make("h3", {}, title), content);

const missing = (command) => make("p", { class: "quiet" }, "Not known yet. This fills it in: ", make("code", {}, command));

function facts(pairs) {
  const known = pairs.filter(([, value]) => value != null && value !== "");
  return make("dl", {}, known.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function trainingOf({ data, trained }) {
  if (!data && !trained) return null;
  return facts([
    ["Data", data?.source],
    ["Texts", number(data?.rows)],
    ["Trained", when(trained?.at)],
    ["Took", trained?.seconds != null ? duration(trained.seconds) : null],
    ["Learner chosen", trained?.reason],
  ]);
}

function qualityOf({ data, at, rows, metrics, groups }) {
  return [
    facts([["Measured on", data], ["Texts", number(rows)], ["When", when(at)]]),
    metricTable(metrics ?? {}),
    bands(groups ?? []),
  ];
}

function metricTable(metrics) {
  const keys = Object.keys(metrics).map((key) => key.split("@")).filter(([name]) => IN_ORDER.includes(name));
  const shown = IN_ORDER.filter((name) => keys.some(([known]) => known === name));
  const ks = [...new Set(keys.map(([, k]) => Number(k)))].sort((a, b) => a - b);
  const cell = (value) => make("td", { class: "number" }, value == null ? "" : percent(value));
  return make(
    "table",
    { class: "metrics" },
    make("thead", {}, make("tr", {}, make("td"), ks.map((k) => make("th", { scope: "col", class: "number" }, `@${k}`)))),
    make("tbody", {}, shown.map((name) => make(
      "tr",
      {},
      make("th", { scope: "row" }, name, make("span", { class: "quiet" }, ` ${MEANT[name]}`)),
      ks.map((k) => cell(metrics[`${name}@${k}`])),
    ))),
  );
}

// Recall, as precision of a band is bounded by how many of the true labels are in it.
function bands(groups) {
  const best = Object.keys(groups[0]?.metrics ?? {}).filter((key) => key.startsWith("R@")).at(-1);
  if (!best) return null;
  return make(
    "div",
    {},
    make("h4", {}, `${best} by how often a label was seen in training`),
    make("ul", { class: "bands" }, groups.map((group) => {
      const share = group.metrics?.[best];
      return make(
        "li",
        {},
        make("span", {}, times(group.train_counts ?? []), make("span", { class: "quiet" }, ` ${counted(group.n_labels ?? 0, "label")}`)),
        make("span", { class: "number" }, share == null ? "no truth" : percent(share)),
        bar(share ?? 0),
      );
    })),
  );
}

function times([low = 0, high = 0]) {
  if (high === 0) return "never";
  return low === high ? counted(low, "time") : `${whole(low)} to ${whole(high)} times`;
}

function auditOf(audit) {
  const examples = (audit.examples ?? []).map(({ says }) => says).filter(Boolean).slice(0, 3);
  return [
    facts([
      ["Looked at", audit.data],
      ["When", when(audit.at)],
      ["Label sets", number(audit.label_sets)],
      ["Can be given", number(audit.argmaxable)],
      ["Can never be given", number(audit.unargmaxable)],
      ["Not decided", number(audit.undetermined)],
    ]),
    ...[...(audit.reasons ?? []), ...examples].map((sentence) => make("p", { class: "quiet" }, sentence)),
  ];
}

const number = (value) => (value == null ? null : whole(value));

function when(time) {
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
