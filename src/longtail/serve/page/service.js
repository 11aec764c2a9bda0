// Requests to the service: the token, retries if it is busy or gone, and only the latest answer.

import { find } from "./dom.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;
const BUSY = new Set([408, 429, 503]);

export class Refused extends Error {
  constructor(message, code = "") {
    super(message);
    this.code = code;
  }
}

// A lane has one request at a time; the next request cancels it.
export class Lane {
  #latest = null;
  #tell;

  constructor(tell) {
    this.#tell = tell;
  }

  // The answer, or undefined if a later request cancelled this one.
  async ask(path, body) {
    this.stop();
    const mine = new AbortController();
    this.#latest = mine;
    const tell = (message) => this.#latest === mine && this.#tell(message);
    try {
      const answer = await insist(path, body, mine.signal, tell);
      if (this.#latest !== mine) return undefined;
      this.#tell("");
      this.#latest = null;
      return answer;
    } catch (error) {
      if (this.#latest !== mine) return undefined;
      this.#latest = null;
      throw error;
    }
  }

  stop() {
    this.#latest?.abort();
    this.#latest = null;
    this.#tell("");
  }
}

async function insist(path, body, signal, tell) {
  for (let failures = 0; ; failures += 1) {
    const sent = token();
    const answer = await once(path, body, sent, signal);
    if (answer?.ok && answer.content) return answer.content;
    if (answer?.status === 401) {
      await newToken(sent);
      signal.throwIfAborted();
    } else if (!answer) {
      const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** failures);
      tell("The service does not respond. Trying again …");
      await pause(wait * (1 + Math.random() / 4), signal);
    } else if (BUSY.has(answer.status)) {
      // Tell the reader only if it lasts.
      if (failures > 1) tell("The service is busy. Trying again …");
      await pause(1000 * answer.retryAfter * (1 + Math.random() / 4), signal);
    } else {
      throw new Refused(answer.content?.error?.message ?? `The service answered ${answer.status}.`, answer.content?.error?.code);
    }
  }
}

// One request; null if no complete answer came.
async function once(path, body, sent, signal) {
  const headers = sent ? { Authorization: `Bearer ${sent}` } : {};
  const options = { headers, signal, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  try {
    const response = await fetch(path, options);
    const text = await response.text();
    const retryAfter = Number(response.headers.get("Retry-After")) || 1;
    return { ok: response.ok, status: response.status, retryAfter, content: parsed(text) };
  } catch {
    signal.throwIfAborted();
    return null;
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      signal.removeEventListener("abort", stopped);
      resolve();
    };
    const stopped = () => {
      done();
      reject(signal.reason);
    };
    const timer = setTimeout(done, milliseconds);
    addEventListener("online", done);
    signal.addEventListener("abort", stopped);
  });
}

let tokenInMemory = null;
let tokenAsked = null;

function token() {
  try {
    return sessionStorage.getItem("longtail-token") ?? tokenInMemory;
  } catch {
    return tokenInMemory;
  }
}

// Requests refused together share one dialog; a request sent before the token was entered is sent again.
function newToken(refused) {
  if (token() !== refused) return undefined;
  tokenAsked ??= askForToken(refused).finally(() => (tokenAsked = null));
  return tokenAsked;
}

function askForToken(refused) {
  const dialog = find("token-dialog");
  const field = find("token");
  if (refused) find("token-why").textContent = "The service did not accept this token. Try another.";
  field.value = "";
  return new Promise((resolve, reject) => {
    let given = false;
    find("token-form").onsubmit = (event) => {
      event.preventDefault();
      given = true;
      keepToken(field.value);
      dialog.close();
    };
    find("token-cancel").onclick = () => dialog.close();
    dialog.onclose = () => (given ? resolve() : reject(new Refused("The service requires a token.")));
    dialog.showModal();
  });
}

function keepToken(given) {
  tokenInMemory = given;
  try {
    sessionStorage.setItem("longtail-token", given);
  } catch {
    // The token holds until the page is closed.
  }
}
