// Compares every response that a test reads with openapi.json. The harness passes each response
// through `checked`, and each socket of the process is one of `checkedSockets`, so no test can omit the
// check. A field that the document does not name, a missing field, a wrong type or an undocumented
// error throws. The exception names the operation, the position in the response, and what was
// expected there. A keyword that Ajv does not know throws as soon as the schema is used.

import { readFile } from "node:fs/promises";
import Ajv from "ajv/dist/2020.js";
import { OPENAPI } from "../../scripts/paths.mjs";

const ANY_ERROR = { $ref: "#/components/schemas/Error" };

export class Answers {
  #ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false, allErrors: true, validateFormats: false });
  #components;
  #operations;
  /** The functions that check a schema, by the schema. */
  #checks = new Map();

  constructor({ paths, components }) {
    const schemas = Object.entries(components.schemas).map(([name, schema]) => [name, closedWithin(schema, false)]);
    this.#components = { schemas: Object.fromEntries(schemas) };
    this.#ajv.addKeyword("components");
    this.#operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        name: operation.operationId,
        method: method.toUpperCase(),
        address: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
        answer: operation.responses[200].content?.["application/json"]?.schema,
        refusal: operation.responses.default?.content["application/json"].schema,
      })),
    );
  }

  /**
   * Returns the response with `text` and `json` that throw if the answer differs from the document.
   * `isCutOff` returns whether the test has stopped the server in the meantime: then the answer may
   * be truncated.
   */
  checked(response, method, path, isCutOff = () => false) {
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

  /** A class of sockets that checks the results of calls, and messages, as they arrive. */
  checkedSockets(Socket) {
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

  /** Checks an operation's answer, over any transport. */
  holdAnswer(name, body) {
    const operation = this.#operations.find((one) => one.name === name);
    if (operation?.answer === undefined) throw new Error(`openapi.json has no answer of \`${name}\``);
    this.#throwIfDifferent(name, operation.answer, body);
  }

  /** Checks an error's answer. */
  holdError(name, body) {
    const operation = this.#operations.find((one) => one.name === name);
    this.#throwIfDifferent(name, operation?.refusal ?? ANY_ERROR, body);
  }

  #throwIfDifferent(name, schema, body) {
    const wrong = this.find(schema, body);
    if (wrong !== undefined)
      throw new Error(`${name} returned an answer that openapi.json does not describe. ${wrong}`);
  }

  /** The difference between a value and its schema, or `undefined`. */
  find(schema, value) {
    const isRight =
      this.#checks.get(schema) ?? this.#ajv.compile({ allOf: [closed(schema)], components: this.#components });
    this.#checks.set(schema, isRight);
    if (isRight(value)) return undefined;
    const { errors } = isRight;
    const differences = errors.map(
      ({ instancePath, message, params }) => `${instancePath || "the answer"} ${message} ${JSON.stringify(params)}`,
    );
    return differences.join("; ").slice(0, MAX_MESSAGE_CHARS);
  }
}

/** The maximum length of an exception's message. */
const MAX_MESSAGE_CHARS = 2_000;

/** The schema of a value without fields other than the named ones. */
function closed(schema) {
  return typeof schema === "boolean" ? schema : { ...closedWithin(schema, false), unevaluatedProperties: false };
}

/**
 * Closes the values within a schema, but not the value itself: a schema that refers to it may name
 * more fields. `isOpen`: the schema only refines fields that are named beside it, so it closes
 * nothing.
 */
function closedWithin(schema, isOpen) {
  if (typeof schema === "boolean") return schema;
  const value = (within) => (isOpen ? closedWithin(within, true) : closed(within));
  const choice = (within) => closedWithin(within, isOpen || schema.properties !== undefined);
  const entries = Object.entries(schema).map(([keyword, given]) => {
    if (keyword === "properties")
      return [keyword, Object.fromEntries(Object.entries(given).map(([name, field]) => [name, value(field)]))];
    if (keyword === "items" || keyword === "additionalProperties") return [keyword, value(given)];
    if (keyword === "anyOf" || keyword === "oneOf") return [keyword, given.map(choice)];
    return [keyword, given];
  });
  return Object.fromEntries(entries);
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

/** The document in the tree. */
export const answers = new Answers(JSON.parse(await readFile(OPENAPI, "utf8")));
