// Every answer that a test reads is held to openapi.json: the harness gives each
// response through `held`, and each socket of the process is one of `heldSockets`, so
// that no test can forget it. A field that the document
// does not name, a field that is missing or of the wrong type, and an error that is
// not as documented throw, with the operation, the place in the answer, and what
// was expected there.
//
// The rules are those of `src/api/answers/`, which holds the answers of native
// tests: the keywords that our document uses, and no field that its schema does not
// name unless `additionalProperties` allows such fields. A keyword that is not
// listed here is refused, so that no part of a schema is silently ignored.

import { readFile } from "node:fs/promises";
import { OPENAPI } from "../../scripts/places.mjs";

const COMPONENTS = "#/components/schemas/";

/** What can be held, and what only speaks to readers of the document. */
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

/** Where in an answer something is wrong, and what was expected there. */
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
      })),
    );
    for (const schema of Object.values(this.#components)) check(schema);
    for (const { answer } of this.#operations) if (answer !== undefined) check(answer);
  }

  /**
   * The response, whose `text` and `json` throw where it is not as documented. `isCutOff`
   * says whether its sender was ended meanwhile: then half an answer is no fault of it.
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

  /** A class of sockets whose answers to calls, and whose messages, are held as they come. */
  heldSockets(Socket) {
    const answers = this;
    return class extends Socket {
      /** What was called, by the call's id. */
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

  /** What an operation answers, whichever way the answer came. */
  holdAnswer(name, body) {
    const operation = this.#operations.find((one) => one.name === name);
    if (operation?.answer === undefined) throw new Error(`openapi.json has no answer of \`${name}\``);
    this.#tell(name, () => this.hold(operation.answer, body));
  }

  /** The envelope of an error. */
  holdError(name, body) {
    this.#tell(name, () => this.hold({ $ref: `${COMPONENTS}Error` }, body));
  }

  #tell(name, hold) {
    try {
      hold();
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error;
      throw new Error(`${name} answered what openapi.json does not say. ${error.message}`);
    }
  }

  /** `unnamed` is what fields are held to that the schema does not name. */
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
      // Where this schema names the fields itself, a choice says more of some of them.
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
    // Where this schema names no field, the reference or the choices name them.
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
    // The choice that fits deepest is the one that was meant.
    if (fit === 0) throw misfits.reduce((meant, misfit) => (misfit.place.length >= meant.place.length ? misfit : meant));
    if (fit > most) throw new Mismatch(place, `${fit} of \`oneOf\` fit, and only one may`);
  }

  #find(reference) {
    const schema = this.#components[reference.slice(COMPONENTS.length)];
    if (!reference.startsWith(COMPONENTS) || schema === undefined) throw new Error(`the document has nothing at ${reference}`);
    return schema;
  }
}

/** Refuses a schema with a keyword or a type that is not held. */
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

/** JSON where it is. */
function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

/** The beginning of what was found, for a person. */
function shown(value) {
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** The answers that the document in the tree describes. */
export const answers = new Answers(JSON.parse(await readFile(OPENAPI, "utf8")));
