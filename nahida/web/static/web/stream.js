// One session's events. A lost connection comes back where it stopped, at growing pauses.

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

export class Stream {
  #url;
  #source = null;
  #timer = 0;
  #pause = FIRST_PAUSE_MS;
  #session = null;
  #cursor = 0;

  constructor(url, { onUpdate, onUp, onDown }) {
    this.#url = url;
    Object.assign(this, { onUpdate, onUp, onDown });
  }

  get isOpen() {
    return this.#source !== null;
  }

  follow(session, cursor) {
    this.#session = session;
    this.#cursor = cursor;
    this.#pause = FIRST_PAUSE_MS;
    this.resume();
  }

  resume() {
    this.close();
    const parameters = new URLSearchParams({ after: this.#cursor });
    if (this.#session !== null) parameters.set("session", this.#session);
    const source = new EventSource(`${this.#url}?${parameters}`);
    source.onopen = () => {
      this.#pause = FIRST_PAUSE_MS;
      this.onUp();
    };
    source.onmessage = (event) => {
      this.#cursor = Number(event.lastEventId);
      this.onUpdate(JSON.parse(event.data));
    };
    source.onerror = () => this.#retry();
    this.#source = source;
  }

  close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #retry() {
    this.close();
    this.onDown();
    this.#timer = setTimeout(() => this.resume(), this.#pause * (0.8 + 0.4 * Math.random()));
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE_MS);
  }
}
