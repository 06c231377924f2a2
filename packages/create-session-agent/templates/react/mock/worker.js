// The Worker for the tests: your own, with a model that needs no key and repeats the user's text.

import { mockModel } from "session-agent/testing";
import worker, { Assistant as Own } from "../src/worker.ts";

const model = mockModel();

export class Assistant extends Own {
  model() {
    return model;
  }
}

export default worker;
