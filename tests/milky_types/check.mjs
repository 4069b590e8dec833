// Judges values by the Milky protocol's own schemas: JSON lines {kind, name?, value} in, {ok, value | error} out.
//
// The schemas drop unknown keys and turn unknown segments into text without a word, so what they
// made of a value is compared with the value: only what they left alone is right.
import { createInterface } from "node:readline";
import { zodApiCategories, zodCommonStructs } from "@saltify/milky-types";
import { apis, events, segments } from "./since_1_3.mjs";

const official = Object.assign({}, ...Object.values(zodApiCategories).map((category) => category.apis));

function schemaOf({ kind, name, value }) {
  if (kind === "event") return events[value?.event_type] ?? zodCommonStructs.Event;
  if (kind === "segment") return zodCommonStructs.IncomingSegment;
  if (kind !== "request" && kind !== "response") throw new Error(`no such kind: ${kind}`);
  const api = official[name] ?? apis[name];
  if (!api) throw new Error(`no such API: ${name}`);
  return kind === "request" ? api.requestSchema : api.responseSchema;
}

const isObject = (value) => typeof value === "object" && value !== null;

function* differences(given, made, path) {
  if (Object.is(given, made)) return;
  if (isObject(given) && isObject(made)) {
    const since = segments[given.type];
    if (since && made.type === "text") {
      const { success, data, error } = since.safeParse(given);
      if (success) yield* differences(given, data, path);
      else yield `${path}: ${error.message}`;
      return;
    }
    for (const key of Object.keys(given)) {
      // A request may leave a value to the protocol's default, in words too.
      if (given[key] === null && made[key] !== undefined) continue;
      if (!(key in made)) yield `${path}.${key}: unknown`;
      else yield* differences(given[key], made[key], `${path}.${key}`);
    }
    return;
  }
  yield `${path}: ${JSON.stringify(given)} became ${JSON.stringify(made)}`;
}

function judge(line) {
  try {
    const { kind, name, value } = JSON.parse(line);
    const schema = schemaOf({ kind, name, value });
    if (!schema) {
      const isEmpty = isObject(value) && Object.keys(value).length === 0;
      return isEmpty ? { ok: true, value } : { ok: false, error: "takes and gives nothing" };
    }
    const { success, data, error } = schema.safeParse(value);
    if (!success) return { ok: false, error: error.message };
    const found = [...differences(value, data, kind)];
    return found.length ? { ok: false, error: found.join("; ") } : { ok: true, value: data };
  } catch (error) {
    return { ok: false, error: String(error) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(judge(line))}\n`);
}
