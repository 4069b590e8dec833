// The list of turns on the page: one element a turn, kept in order, touched only when it changed.

import { render } from "./markdown.js";

const FINAL = new Set(["observed", "done", "failed", "stopped"]);
const NEAR_PX = 90; // of the end: whoever is this close is taken along
const WAIT_MS = 8_000; // for a worker before the page says that it waits

export class Log {
  #list;
  #frame;
  #turns = new Map();
  #nodes = new Map();
  #draft = "";
  #timer = 0;

  constructor(list, frame) {
    this.#list = list;
    this.#frame = frame;
    frame.addEventListener("click", copy);
  }

  get size() {
    return this.#turns.size;
  }

  get first() {
    return Math.min(...this.#turns.keys());
  }

  get isBusy() {
    return [...this.#turns.values()].some((turn) => !FINAL.has(turn.state));
  }

  get isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#frame;
    return scrollHeight - scrollTop - clientHeight < NEAR_PX;
  }

  clear() {
    this.#turns.clear();
    this.#nodes.clear();
    this.#draft = "";
    this.#list.replaceChildren();
  }

  has(id) {
    return this.#turns.has(id);
  }

  /** Add or replace turns, and go along with the end if the reader was there. */
  show(turns, { draft } = {}) {
    const wasAtEnd = this.isAtEnd;
    for (const turn of turns) this.#put(turn);
    if (draft !== undefined) this.#draft = grown(this.#draft, draft);
    this.#arrange();
    if (wasAtEnd) this.toEnd();
  }

  /** Add earlier turns above, without moving what is being read. */
  showEarlier(turns) {
    const below = this.#frame.scrollHeight - this.#frame.scrollTop;
    for (const turn of turns) this.#put(turn);
    this.#arrange();
    this.#frame.scrollTop = this.#frame.scrollHeight - below;
  }

  toEnd() {
    this.#frame.scrollTop = this.#frame.scrollHeight;
  }

  #put(turn) {
    this.#turns.set(turn.id, turn);
    this.#nodes.set(turn.id, turnNode(turn));
  }

  /** An answer stands behind what it answers, though later messages may have been written before it. */
  #ordered() {
    const places = new Map();
    for (const turn of this.#turns.values()) {
      const place = places.get(turn.answered_by) ?? 0;
      if (turn.answered_by) places.set(turn.answered_by, Math.max(place, turn.id));
    }
    const place = (turn) => places.get(turn.id) ?? turn.id;
    return [...this.#turns.values()].sort((a, b) => place(a) - place(b) || a.id - b.id);
  }

  #arrange() {
    clearTimeout(this.#timer);
    const wanted = [];
    let day = "";
    const turns = this.#ordered();
    const answering = turns.findLast((turn) => turn.state === "running");
    const waiting = answering ?? turns.find((turn) => turn.state === "pending");
    for (const turn of turns) {
      const today = new Date(turn.at).toLocaleDateString();
      if (today !== day) wanted.push(this.#kept(`day ${(day = today)}`, () => dayNode(turn.at)));
      wanted.push(this.#nodes.get(turn.id));
      if (turn === waiting) wanted.push(this.#draftNode(turn));
    }
    if (!waiting) this.#draft = "";
    settle(this.#list, wanted);
  }

  #kept(key, make) {
    if (!this.#nodes.has(key)) this.#nodes.set(key, make());
    return this.#nodes.get(key);
  }

  #draftNode(turn) {
    const node = this.#kept("draft", () => element("li", "turn assistant draft"));
    if (this.#draft) {
      const text = element("div", "text");
      text.append(render(this.#draft));
      node.replaceChildren(leaf(), text);
      return node;
    }
    const dots = element("div", "dots");
    dots.append(element("i"), element("i"), element("i"), element("span", "unseen", "Thinking"));
    node.replaceChildren(leaf(), dots);
    const waited = Date.now() - new Date(turn.at);
    const isLate = turn.state === "pending" && waited > WAIT_MS;
    if (isLate) node.append(element("p", "quiet", "Still waiting for a free worker…"));
    else if (turn.state === "pending") this.#timer = setTimeout(() => this.show([]), WAIT_MS);
    return node;
  }
}

function grown(text, draft) {
  return draft === null ? "" : text.slice(0, draft.at) + draft.text;
}

function turnNode(turn) {
  const isOwn = turn.role === "user";
  const kind = turn.is_notice ? "notice" : turn.kind === "command" ? "command" : turn.role;
  const node = element("li", `turn ${kind} ${turn.state}`);
  node.dataset.id = turn.id;
  node.title = new Date(turn.at).toLocaleString();
  const text = element("div", "text");
  if (isOwn || turn.is_notice) text.textContent = turn.text;
  else text.append(render(turn.text));
  if (!isOwn && !turn.is_notice) node.append(leaf());
  if (turn.label) node.append(element("p", "label", turn.label));
  node.append(text);
  if (turn.state === "stopped" && isOwn) node.append(element("p", "label", "stopped"));
  if (turn.state === "failed" && isOwn) node.append(element("p", "label", "not answered"));
  return node;
}

function dayNode(at) {
  const date = new Date(at);
  const isThisYear = date.getFullYear() === new Date().getFullYear();
  const year = isThisYear ? {} : { year: "numeric" };
  const text = date.toLocaleDateString(undefined, { day: "numeric", month: "long", ...year });
  return element("li", "day", text);
}

function leaf() {
  return document.querySelector(".brand .leaf").cloneNode(true);
}

/** Make `nodes` the children of a list, moving only those that are not in their place. */
function settle(list, nodes) {
  nodes.forEach((node, at) => {
    if (list.children[at] !== node) list.insertBefore(node, list.children[at] ?? null);
  });
  while (list.children.length > nodes.length) list.lastElementChild.remove();
}

export function element(name, className = "", text = "") {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text) node.textContent = text;
  return node;
}

async function copy(event) {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.closest("figure").querySelector("code").textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1_500);
}
