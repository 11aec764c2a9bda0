// The only place that makes elements: names and texts become text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

// Names can be in any script and direction, and must not affect the line around them. Long names of programs and
// taxonomies can break after punctuation.
export const named = (name) => make("bdi", {}, name.split(/(?<=\w[./:_-]+)(?=\w)/).flatMap((part, place) => (place ? [make("wbr"), part] : part)));

// `share` is a number from 0 to 1, or from -1 to 1 for a bar that starts in the middle.
export function bar(share, kind = "") {
  const element = make("span", { class: `bar ${kind}`, "aria-hidden": "true" }, make("span"));
  setBar(element, share);
  return element;
}

export function setBar(element, share) {
  element.style.setProperty("--share", Math.min(1, Math.abs(share)).toFixed(4));
}

export function icon(path) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", "0 0 16 16");
  picture.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  picture.append(line);
  return picture;
}

const WHOLE = new Intl.NumberFormat("en-GB");

export const whole = (number) => WHOLE.format(number);

export const counted = (number, what) => `${whole(number)} ${what}${number === 1 ? "" : "s"}`;

export const percent = (share) => `${(100 * share).toFixed(1)}%`;

// Two decimals, or more if both would be zero.
export function decimal(number) {
  const size = Math.abs(number);
  if (size >= 0.1 || size === 0) return number.toFixed(2);
  return size >= 0.0001 ? number.toFixed(1 - Math.floor(Math.log10(size))) : number.toExponential(0);
}

// A sentence about two different numbers, with enough decimals to see that they differ.
export function toldApart(one, other, sentence) {
  if (decimal(one) !== decimal(other)) return sentence(decimal(one), decimal(other));
  let places = 3;
  while (places < 12 && one.toFixed(places) === other.toFixed(places)) places += 1;
  return sentence(one.toFixed(places), other.toFixed(places));
}

export const signed = (number) => (number < 0 ? "−" : "+") + decimal(Math.abs(number));
