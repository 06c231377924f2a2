// Every answer that a test reads is compared with openapi.json. The harness gives each
// response through `held`, and each socket of the process is one of `heldSockets`, so no
// test can forget the check. A field that the document does not name, a missing field, a
// wrong type and an error that differs from the document throw. The exception names the
// operation, the place in the answer, and what was expected there.

import { readFile } from "node:fs/promises";
import { OPENAPI } from "../../scripts/places.mjs";

const COMPONENTS = "#/components/schemas/";

/** The keywords that this file checks, and the ones that are only for the document's readers. */
const HELD = new Set(["$ref", "type", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "const", "enum", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"]);
const TOLD = new Set(["description", "format", "default"]);

const TYPES = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  integer: (value) => Number.isInteger(value),
  number: (value) => typeof value === "number",
  string: (value) => typeof value === "string",
  array: (value) => Array.isArray(value),
  object: (value) => value !== null && typeof value === "object" && !Array.isArray(value),
};

/** A place in an answer that differs from the document, and what was expected there. */
class Mismatch extends Error {
  constructor(place, expected) {
    super(`${place === "" ? "the answer" : place}: ${expected}`);
    this.place = place;
  }
}

export class Answers {
  #components;
  #operations;

  constructor({ paths, components }) {
    this.#components = components.schemas;
    this.#operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        name: operation.operationId,
        method: method.toUpperCase(),
        address: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
        answer: operation.responses[200].content?.["application/json"]?.schema,
        refusal: operation.responses.default?.content["application/json"].schema,
      })),
    );
    for (const schema of Object.values(this.#components)) check(schema);
    for (const { answer, refusal } of this.#operations) for (const schema of [answer, refusal]) if (schema !== undefined) check(schema);
  }

  /**
   * The response, with `text` and `json` that throw if the answer differs from the
   * document. `isCutOff` says whether a test has stopped the server meanwhile: then the
   * answer may end early.
   */
  held(response, method, path, isCutOff = () => false) {
    const { pathname } = new URL(path, "http://worker/");
    const operation = this.#operations.find((one) => one.method === method && one.address.test(pathname));
    const read = response.text.bind(response);
    response.text = async () => {
      const text = await read();
      if (response.status === 204 || !isJson(response)) return text;
      const body = parsed(text);
      if (body !== undefined) this.#hold(response, operation, pathname, body);
      else if (!isCutOff()) throw new Error(`${operation?.name ?? pathname} did not answer JSON: ${text.slice(0, 80)}`);
      return text;
    };
    response.json = async () => JSON.parse(await response.text());
    return response;
  }

  #hold({ status }, operation, pathname, body) {
    if (status >= 400) this.holdError(operation?.name ?? pathname, body);
    else if (status === 200 && operation?.answer !== undefined) this.holdAnswer(operation.name, body);
  }

  /** A class of sockets that checks the answers to calls, and the messages, as they come. */
  heldSockets(Socket) {
    const answers = this;
    return class extends Socket {
      /** The operation of each call, by the call's id. */
      #called = new Map();

      constructor(...parameters) {
        super(...parameters);
        this.addEventListener("message", ({ data }) => {
          const frame = parsed(data);
          if (frame?.type === "rpc") {
            if (frame.success) answers.holdAnswer(this.#called.get(frame.id), frame.result);
            this.#called.delete(frame.id);
          }
          if (frame?.type === "cf_agent_chat_messages") answers.holdAnswer("getMessages", frame.messages);
          if (frame?.type === "cf_agent_message_updated") answers.holdAnswer("getMessages", [frame.message]);
        });
      }

      send(data) {
        const frame = parsed(data);
        if (frame?.type === "rpc") this.#called.set(frame.id, frame.method);
        super.send(data);
      }
    };
  }

  /** Checks an operation's answer, whichever way the answer came. */
  holdAnswer(name, body) {
    const operation = this.#operations.find((one) => one.name === name);
    if (operation?.answer === undefined) throw new Error(`openapi.json has no answer of \`${name}\``);
    this.#tell(name, () => this.hold(operation.answer, body));
  }

  /** Checks an error's answer. */
  holdError(name, body) {
    const operation = this.#operations.find((one) => one.name === name);
    this.#tell(name, () => this.hold(operation?.refusal ?? { $ref: `${COMPONENTS}Error` }, body));
  }

  #tell(name, hold) {
    try {
      hold();
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error;
      throw new Error(`${name} answered what openapi.json does not say. ${error.message}`);
    }
  }

  /** `unnamed` is the schema for fields that `schema` does not name. */
  hold(schema, value, place = "", unnamed = false) {
    if (schema === true) return;
    if (schema === false) throw new Mismatch(place, "nothing may stand here");
    const types = [schema.type ?? []].flat();
    if (types.length > 0 && !types.some((type) => TYPES[type](value))) {
      throw new Mismatch(place, `expected ${types.join(" or ")}, found ${shown(value)}`);
    }
    if ("const" in schema && value !== schema.const) {
      throw new Mismatch(place, `expected ${shown(schema.const)}, found ${shown(value)}`);
    }
    if (schema.enum !== undefined && !schema.enum.includes(value)) {
      throw new Mismatch(place, `expected one of ${schema.enum.map(shown).join(", ")}, found ${shown(value)}`);
    }
    if (schema.$ref !== undefined) this.hold(this.#find(schema.$ref), value, place, unnamed);
    for (const [keyword, most] of [["anyOf", Infinity], ["oneOf", 1]]) {
      // If this schema names the fields itself, a choice may leave fields out.
      if (schema[keyword] !== undefined) this.#holdChoice(schema[keyword], most, value, place, schema.properties ? true : unnamed);
    }
    if (TYPES.number(value)) within(place, "a number", value, schema.minimum, schema.maximum);
    if (TYPES.string(value)) within(place, "characters", [...value].length, schema.minLength, schema.maxLength);
    if (TYPES.array(value)) {
      within(place, "items", value.length, schema.minItems, schema.maxItems);
      value.forEach((item, n) => this.hold(schema.items ?? true, item, `${place}[${n}]`));
    }
    if (TYPES.object(value)) this.#holdFields(schema, value, place, unnamed);
  }

  #holdFields(schema, value, place, unnamed) {
    const { properties = {}, required = [] } = schema;
    for (const name of required) {
      if (!Object.hasOwn(value, name)) throw new Mismatch(`${place}.${name}`, "is required and missing");
    }
    // If this schema names no field, the reference or the choices name the fields.
    const isDescribedElsewhere = ["$ref", "anyOf", "oneOf"].some((keyword) => keyword in schema);
    const others = schema.additionalProperties ?? (schema.properties === undefined && isDescribedElsewhere ? true : unnamed);
    for (const [name, field] of Object.entries(value)) {
      const named = Object.hasOwn(properties, name) ? properties[name] : others;
      if (named === false) throw new Mismatch(`${place}.${name}`, "the schema names no such field");
      this.hold(named, field, `${place}.${name}`);
    }
  }

  #holdChoice(choices, most, value, place, unnamed) {
    const misfits = [];
    for (const choice of choices) {
      try {
        this.hold(choice, value, place, unnamed);
      } catch (error) {
        if (!(error instanceof Mismatch)) throw error;
        misfits.push(error);
      }
    }
    const fit = choices.length - misfits.length;
    // The choice that was meant is the one whose mismatch lies deepest.
    if (fit === 0) throw misfits.reduce((meant, misfit) => (misfit.place.length >= meant.place.length ? misfit : meant));
    if (fit > most) throw new Mismatch(place, `${fit} of \`oneOf\` fit, and only one may`);
  }

  #find(reference) {
    const schema = this.#components[reference.slice(COMPONENTS.length)];
    if (!reference.startsWith(COMPONENTS) || schema === undefined) throw new Error(`the document has nothing at ${reference}`);
    return schema;
  }
}

/** Refuses a schema with a keyword or a type that this file doesn't check. */
function check(schema) {
  if (typeof schema === "boolean") return;
  for (const [keyword, value] of Object.entries(schema)) {
    if (!HELD.has(keyword) && !TOLD.has(keyword)) throw new Error(`answers.mjs does not know the keyword \`${keyword}\``);
    if (keyword === "type") for (const type of [value].flat()) if (!Object.hasOwn(TYPES, type)) throw new Error(`there is no type \`${type}\``);
    if (keyword === "items" || keyword === "additionalProperties") check(value);
    if (keyword === "properties") Object.values(value).forEach(check);
    if (keyword === "anyOf" || keyword === "oneOf") value.forEach(check);
  }
}

function within(place, what, actual, least = -Infinity, most = Infinity) {
  if (actual < least || actual > most) throw new Mismatch(place, `expected ${what} from ${least} to ${most}, found ${actual}`);
}

function isJson(response) {
  return /^application\/json\b/.test(response.headers.get("content-type") ?? "");
}

/** The value of a text in JSON; `undefined` for any other text. */
function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

/** The beginning of a value, for an error's message. */
function shown(value) {
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** The answers that the document in the tree describes. */
export const answers = new Answers(JSON.parse(await readFile(OPENAPI, "utf8")));
