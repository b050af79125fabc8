// What happens to a request, while it happens and afterwards: state, progress, questions, task, logs, answer.

import { anatomy } from "./call-bar.js";
import { announce, fill, h, inNextFrame, Part } from "./dom.js";
import { stringify } from "./exact-json.js";
import { clock, milliseconds, shortened, since, visible } from "./format.js";
import { questionView } from "./questions.js";
import { resultView } from "./result-view.js";
import { state } from "./state.js";

const NAMES = { ok: "ok", failed: "the tool failed", error: "error", running: "running", "no answer": "no answer" };
const TASK_ENDS = ["completed", "failed", "cancelled"];

export class OutcomeView extends Part {
  #run = null;
  #drawn = {};
  #draw = inNextFrame(() => this.draw());

  build() {
    this.head = h("header.outcome-head", { testid: "outcome", role: "status" });
    this.bar = h("div");
    this.progress = h("div.progress", { hidden: true, testid: "progress" });
    this.questions = h("div");
    this.tasks = h("div");
    this.result = h("div.result", { testid: "result" });
    this.logs = h("div");
    this.append(this.head, this.bar, this.progress, this.questions, this.tasks, this.result, this.logs);
  }

  connected() {
    this.every(200, () => this.#run?.isRunning && this.#draw());
    this.listen(state.calls, "change", () => this.#drawAnatomy());
    this.#draw();
  }

  get run() {
    return this.#run;
  }

  /** Shows an interaction, or nothing. `app` is the URI of the tool's MCP App. */
  show(run, { app = null } = {}) {
    this.prepare();
    if (run === this.#run) return;
    this.#run?.removeEventListener("change", this.#draw);
    this.#run = run;
    this.app = app;
    this.#drawn = {};
    for (const part of [this.bar, this.questions, this.tasks, this.result, this.logs]) fill(part);
    run?.addEventListener("change", this.#draw);
    this.draw();
  }

  draw() {
    const run = this.#run;
    this.toggleAttribute("data-empty", !run);
    if (!run) {
      fill(this.head, h("p.nothing", {}, "Not run yet."));
      this.progress.hidden = true;
      return;
    }
    this.#drawHead(run);
    this.#drawProgress(run);
    this.#once("questions", run.questions.map(({ key, answer }) => `${key}${answer ? "!" : ""}`).join(), () => this.#drawQuestions(run));
    this.#once("tasks", String(run.tasks.length), () => this.#drawTasks(run));
    this.#once("logs", `${run.logs.length} ${run.isRunning}`, () => this.#drawLogs(run));
    this.#once("result", run.state, () => this.#drawResult(run));
    this.#drawAnatomy();
  }

  #once(part, key, draw) {
    if (this.#drawn[part] === key) return;
    this.#drawn[part] = key;
    draw();
  }

  #drawHead(run) {
    const asks = run.isRunning && run.questions.some((each) => !each.answer);
    const outcome = asks ? "asks" : run.outcome === "failed" && run.state === "failed" ? "no answer" : run.outcome;
    const key = `${outcome} ${run.isCancelling} ${run.answer?.call}`;
    if (this.#drawn.head !== key) {
      this.#drawn.head = key;
      this.elapsed = h("span.elapsed", { testid: "elapsed" });
      const exit = run.answer?.frame.result?._meta?.exitCode;
      fill(this.head,
        h("span.status", { "data-status": outcome, testid: "status" }, run.isCancelling && run.isRunning ? "cancelling" : NAMES[outcome] || outcome),
        this.elapsed,
        exit !== undefined && exit !== 0 && h("span.kind", {}, `exit ${exit}`),
        h("span.kind", {}, run.body.revision),
        h("span.push"),
        run.answer?.call !== undefined && run.answer.call !== null && (this.link = h("a.quiet", {
          href: `/?call=${run.answer.call}#calls`, testid: "to-call",
          onclick: (event) => {
            event.preventDefault();
            state.chooseServer("own");
            const call = state.calls.calls.get(run.answer.call);
            state.go({ panel: "calls", call: call ? state.calls.ownerOf(call).number : run.answer.call });
          },
        }, `Call ${run.answer.call}`)));
    }
    this.elapsed.textContent = milliseconds(run.elapsed);
  }

  #drawProgress({ progress, isRunning }) {
    this.progress.hidden = !progress || !isRunning;
    if (this.progress.hidden) return;
    const share = progress.total > 0 ? Math.min(1, progress.progress / progress.total) : null;
    if (!this.progress.firstChild) {
      this.meter = h("div.meter", { role: "progressbar", "aria-label": "Progress", "aria-valuemin": 0, "aria-valuemax": 100 }, h("span"));
      this.meterText = h("p.progress-text");
      this.progress.append(this.meter, this.meterText);
    }
    this.meter.classList.toggle("is-endless", share === null);
    this.meter.firstChild.style.width = `${100 * (share ?? 1)}%`;
    if (share !== null) this.meter.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    this.meterText.textContent = [share === null ? String(progress.progress) : `${Math.round(100 * share)} %`,
      progress.message && visible(String(progress.message))].filter(Boolean).join("  ");
  }

  #drawQuestions(run) {
    const open = run.questions.filter((each) => !each.answer);
    const shown = [...this.questions.children].filter((node) => open.some(({ key }) => key === node.dataset.key));
    const views = open.map((question) => shown.find((node) => node.dataset.key === question.key) || questionView(question,
      (answer) => run.reply(question.key, answer)));
    const answered = run.questions.filter((each) => each.answer).map(({ params, method, answer }) => h("p.answered", { testid: "answered" },
      h("b", {}, answer.result?.action || (answer.error ? "rejected" : "answered")), " ", visible(shortened(String(params?.message || method), 120))));
    fill(this.questions, answered, views);
    // Never a button: somebody who is typing would answer by accident.
    (views.at(-1)?.querySelector("textarea, input:not([type=radio])") || views.at(-1))?.focus();
  }

  #drawTasks({ tasks }) {
    if (!tasks.length) return;
    const last = tasks.at(-1);
    const left = Number.isFinite(last.ttlMs) ? Date.parse(last.createdAt) + last.ttlMs : null;
    fill(this.tasks, h("section.task", { "aria-label": "Task", testid: "task" },
      h("p.task-head", {}, h("span.status", { "data-status": TASK_STATUS[last.status] || last.status, testid: "task-status" }, last.status),
        h("code", {}, shortened(last.taskId, 40)),
        left && h("span.kind", {}, `kept until ${clock(left / 1000)}`)),
      h("ol.life", {}, tasks.slice(-12).map((each) => h("li", { "data-status": TASK_ENDS.includes(each.status) ? each.status : "open" },
        h("b", {}, each.status), " ", each.statusMessage && visible(each.statusMessage),
          h("span.when", {}, `${since(tasks[0].seenAt / 1000, each.seenAt / 1000)}`))))));
  }

  #drawLogs({ logs, isRunning }) {
    if (!logs.length) return;
    const wasOpen = this.logs.querySelector("details")?.open;
    const list = h("ol.log", {}, logs.slice(-200).map(({ level, logger, data }) => h("li", { "data-level": level },
      h("b", {}, level), logger && h("span.logger", {}, logger), h("span", {}, visible(shortened(typeof data === "string" ? data : stringify(data), 2000))))));
    fill(this.logs, h("details.section", { open: wasOpen ?? isRunning, testid: "logs" }, h("summary", {}, `Log lines: ${logs.length}`), list));
    list.scrollTop = list.scrollHeight;
  }

  #drawResult(run) {
    if (run.isRunning) return;
    if (!run.answer) {
      fill(this.result, h(run.state === "cancelled" ? "p.nothing" : "p.bad", { testid: "failure" }, run.sentence));
      return;
    }
    const app = this.app && run.answer.frame.result ? { uri: this.app, arguments: run.body.params.arguments, result: run.answer.frame.result,
      revision: run.body.revision } : null;
    fill(this.result, resultView(run.answer.frame, { app }));
    if (run.outcome === "error") announce(shortened(String(run.answer.frame.error.message), 120), { isError: true });
  }

  #drawAnatomy() {
    const number = this.#run?.answer?.call;
    const answered = number !== undefined && state.isOwnServer ? state.calls.calls.get(number) : null;
    const call = answered && state.calls.ownerOf(answered);
    if (!call || call.endedAt === undefined || this.#drawn.bar === number) return;
    this.#drawn.bar = number;
    this.link?.replaceChildren(`Call ${call.number}`);
    fill(this.bar, anatomy(call));
  }
}

const TASK_STATUS = { working: "running", input_required: "asks", completed: "ok" };

customElements.define("outcome-view", OutcomeView);
