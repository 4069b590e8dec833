// The chat page: what the user does goes to the server; what is seen comes back over the session's event stream.

import { SignedOut, get, post } from "./api.js";
import { Log, element } from "./log.js";
import { Stream } from "./stream.js";

const boot = JSON.parse(document.getElementById("boot").textContent);
const { urls } = boot;
const site = document.title;
const at = (id) => document.getElementById(id);

const DOWN_MS = 2_500; // a connection may be away this long before the page says so
const KEPT_TEXT = "nahida text";
const KEPT_BANNER = "nahida banner";

const log = new Log(at("turns"), at("log"));
const stream = new Stream(urls.events, { onUpdate, onUp, onDown });
const page = { session: null, active: null, sessions: [], isNewWanted: false };
let unsent = null; // the message that failed: sent again unchanged, it keeps its key
let downTimer = 0;

// What the server says

function open(state, { keepsUrl = false } = {}) {
  page.session = state.session;
  page.active = state.active;
  page.sessions = state.sessions;
  page.isNewWanted = false;
  log.clear();
  log.show(state.turns);
  log.toEnd();
  at("earlier").hidden = !state.more;
  if (!keepsUrl) history.pushState(state.session, "", addressOf(state.session));
  redraw();
  stream.follow(state.session, state.cursor);
}

async function go(session, options) {
  closeSide();
  try {
    open(await get(urls.state, session === null ? {} : { session }), options);
    hint("");
    at("text").focus({ preventScroll: true });
  } catch (error) {
    fail(error);
  }
}

function onUpdate(update) {
  if (update.gone || update.moved) return go(update.gone ? null : page.session, { keepsUrl: true });
  if (update.turns || update.draft !== undefined) {
    log.show(update.turns ?? [], { draft: update.draft });
    redraw();
  }
  if (update.active !== undefined && update.active !== page.active) {
    const wasHere = page.session === page.active;
    page.active = update.active;
    if (wasHere || page.isNewWanted) return go(null);
    redraw();
  }
  if (document.hidden && !log.isBusy) {
    document.title = `● ${site}`;
    stream.close();
  }
}

function onUp() {
  clearTimeout(downTimer);
  downTimer = 0;
  at("line").textContent = "";
}

function onDown() {
  downTimer ||= setTimeout(async () => {
    at("line").textContent = navigator.onLine ? "Connecting again…" : "Offline";
    await get(urls.state).catch((error) => error instanceof SignedOut && fail(error));
  }, DOWN_MS);
}

// What the user does

async function send(text, { session = page.session } = {}) {
  const again = unsent?.text === text && unsent.session === session;
  const message = again ? unsent : { text, session, key: newKey() };
  unsent = message;
  const { turn } = await post(urls.send, message);
  unsent = null;
  if (page.session === null) return go(null);
  const isHere = session === page.session;
  if (isHere && turn !== null && !log.has(turn)) log.show([ownTurn(turn, message)]);
  if (isHere) nameSession(text);
  page.active = session ?? page.active;
  redraw();
  if (!stream.isOpen) stream.resume();
}

async function submit() {
  const box = at("text");
  const text = box.value.trim();
  if (!text || at("send").disabled) return;
  if (text.length > boot.longest) {
    return fail(new Error(`That is ${text.length} characters; ${boot.longest} fit into one message.`));
  }
  at("send").disabled = true;
  try {
    await send(text);
    if (box.value.trim() === text) box.value = "";
    fail(null);
    log.toEnd();
  } catch (error) {
    fail(error, " Your text is still here.");
  } finally {
    at("send").disabled = false;
    keepText();
  }
}

async function command(text, options) {
  closeSide();
  try {
    await send(text, options);
    fail(null);
  } catch (error) {
    fail(error);
  }
}

async function startNew() {
  if (page.session === page.active && log.size === 0) {
    closeSide();
    return at("text").focus();
  }
  page.isNewWanted = true;
  await command("/new", { session: page.active });
}

async function earlier() {
  const button = at("earlier");
  button.disabled = true;
  try {
    const found = await get(urls.turns, { session: page.session, before: log.first });
    log.showEarlier(found.turns);
    button.hidden = !found.more;
  } catch (error) {
    fail(error);
  } finally {
    button.disabled = false;
  }
}

// What is drawn

function redraw() {
  at("welcome").hidden = log.size > 0;
  at("stop").hidden = !log.isBusy;
  at("down").hidden = log.isAtEnd;
  const current = page.sessions.find((session) => session.id === page.session);
  at("title").textContent = current?.title || site;
  at("sessions").replaceChildren(...page.sessions.map(sessionLink));
  const isOlder = page.session !== page.active;
  hint(isOlder ? "An earlier conversation. Write, and it goes on from here." : "");
}

function sessionLink(session) {
  const link = element("a", "", session.title || "New conversation");
  link.href = addressOf(session.id);
  link.title = `${link.textContent}\n${new Date(session.at).toLocaleString()}`;
  if (session.id === page.session) link.setAttribute("aria-current", "page");
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(session.id);
  });
  return link;
}

function nameSession(text) {
  const known = page.sessions.find((session) => session.id === page.session);
  const session = known ?? { id: page.session, title: "" };
  page.sessions = [session, ...page.sessions.filter((other) => other !== session)];
  session.at = new Date().toISOString();
  if (!session.title && !text.startsWith("/")) session.title = text.slice(0, 80);
}

function ownTurn(id, { text, key }) {
  const kind = text.startsWith("/") ? "command" : "message";
  const state = kind === "command" ? "done" : "pending"; // until the stream knows better
  return { id, text, kind, state, role: "user", message_id: key, at: new Date().toISOString() };
}

function hint(text) {
  at("reading").textContent = text;
  at("reading").hidden = !text;
}

function fail(error, more = "") {
  const problem = at("problem");
  problem.hidden = error === null;
  problem.textContent = error === null ? "" : error.message + more;
  if (!(error instanceof SignedOut)) return;
  const link = element("a", "", "Sign in again");
  link.href = `/login/?next=${encodeURIComponent(location.pathname)}`;
  problem.append(" ", link);
}

function addressOf(session) {
  return session === null || session === page.active ? urls.chat : `${urls.chat}s/${session}/`;
}

function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  // Without https a browser has no randomUUID.
  const hex = [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0"));
  return hex.join("").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function keepText() {
  sessionStorage.setItem(KEPT_TEXT, at("text").value);
  grow();
}

function grow() {
  const box = at("text");
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight}px`;
}

function openSide() {
  document.body.classList.add("side-open");
  at("menu").setAttribute("aria-expanded", "true");
}

function closeSide() {
  document.body.classList.remove("side-open");
  at("menu").setAttribute("aria-expanded", "false");
}

// Wiring

at("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
at("text").addEventListener("keydown", (event) => {
  // While an input method is composing, Enter picks a word. Safari says so only by the key code.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  submit();
});
at("text").addEventListener("input", keepText);
at("stop").addEventListener("click", () => command("/stop"));
at("new").addEventListener("click", startNew);
at("earlier").addEventListener("click", earlier);
at("menu").addEventListener("click", openSide);
at("veil").addEventListener("click", closeSide);
at("down").addEventListener("click", () => log.toEnd());
at("log").addEventListener("scroll", () => (at("down").hidden = log.isAtEnd), { passive: true });
at("banner-close")?.addEventListener("click", () => {
  localStorage.setItem(KEPT_BANNER, "hidden");
  at("banner").hidden = true;
});
document.addEventListener("keydown", (event) => event.key === "Escape" && closeSide());
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return log.isBusy || stream.close();
  document.title = site;
  if (!stream.isOpen) stream.resume();
});
addEventListener("online", () => stream.resume());
addEventListener("popstate", () => {
  const session = /\/s\/(\d+)\/$/.exec(location.pathname)?.[1];
  go(session ? Number(session) : null, { keepsUrl: true });
});

if (at("banner")) at("banner").hidden = localStorage.getItem(KEPT_BANNER) === "hidden";
at("text").value ||= sessionStorage.getItem(KEPT_TEXT) ?? ""; // who was quick has typed already
at("send").disabled = false;
grow();
open(boot.state, { keepsUrl: true });
