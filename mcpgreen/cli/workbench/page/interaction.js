// One request from the page until its answer: progress, logs, questions, a task. What is shown of it is elsewhere.

import { answerQuestion, cancelRequest, request } from "./api.js";

const MOST_LOGS = 500;

export class Interaction extends EventTarget {
  constructor({ method, params, revision, capabilities, task }) {
    super();
    this.id = null; // the server's name for it
    this.body = { method, params, revision, capabilities, task };
    this.begun = performance.now();
    this.state = "running"; // running, done, failed (no answer), cancelled (no answer)
    this.progress = null;
    this.logs = [];
    this.questions = [];
    this.tasks = [];
    this.answer = null;
    this.isCancelling = false;
  }

  async run() {
    try {
      for await (const message of request(this.body)) {
        TAKE[message.type]?.(this, message);
        this.#tell();
      }
      if (this.state === "running") this.#end("failed", "The connection ended before the answer.");
    } catch (error) {
      this.#end("failed", error.message);
    }
    this.#tell();
    return this;
  }

  get isRunning() {
    return this.state === "running";
  }

  get elapsed() {
    return this.answer?.ms ?? (this.ended ?? performance.now()) - this.begun;
  }

  /** ok, failed (the tool says so), error (JSON-RPC), or what the state says. */
  get outcome() {
    if (this.state !== "done") return this.state;
    const { result, error } = this.answer.frame;
    if (error) return "error";
    return result?.isError ? "failed" : "ok";
  }

  async cancel() {
    if (!this.isRunning) return;
    this.isCancelling = true;
    this.#tell();
    await cancelRequest(this.id);
  }

  async reply(key, answer) {
    await answerQuestion(this.id, key, answer);
    const question = this.questions.find((each) => each.key === key);
    question.answer = answer;
    this.#tell();
  }

  #end(state, sentence) {
    this.state = state;
    this.sentence = sentence;
    this.ended = performance.now();
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}

const TAKE = {
  begun: (run, { id }) => { run.id = id; },
  "notifications/progress": (run, message) => { run.progress = message; },
  "notifications/message"(run, message) {
    run.logs.push(message);
    if (run.logs.length > MOST_LOGS) run.logs.shift();
  },
  question(run, message) {
    run.questions.push({ ...message });
  },
  task(run, message) {
    run.tasks.push({ ...message, seenAt: Date.now() });
  },
  answer(run, message) {
    run.answer = message;
    run.state = "done";
    run.ended = performance.now();
  },
  cancelled(run) {
    run.state = "cancelled";
    run.sentence = "You have cancelled it.";
    run.ended = performance.now();
  },
};
