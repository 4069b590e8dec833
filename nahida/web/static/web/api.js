// What the page asks of the server. A failure says in plain words what happened.

const LONGEST_WAIT_MS = 20_000;

export class SignedOut extends Error {}

export async function get(url, parameters = {}) {
  return ask(`${url}?${new URLSearchParams(parameters)}`);
}

export async function post(url, body) {
  const token = document.querySelector("input[name=csrfmiddlewaretoken]").value;
  return ask(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRFToken": token },
    body: JSON.stringify(body),
  });
}

async function ask(url, options = {}) {
  let response;
  try {
    response = await fetch(url, { ...options, signal: AbortSignal.timeout(LONGEST_WAIT_MS) });
  } catch {
    throw new Error(navigator.onLine ? "The server does not answer." : "You are offline.");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) throw new SignedOut("You have been signed out.");
  if (!response.ok) throw new Error(answer.error ?? `The server refused (${response.status}).`);
  return answer;
}
