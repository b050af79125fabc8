// The calls of one server, put together from its events. Rule: every event can be the first one that is seen of its call,
// and everything that is kept has a bound.

export const MAX_CALLS = 10_000;
const MAX_SAMPLES = 3_600; // two hours
const MAX_CHANGES = 200;
const MAX_NOTES = 400; // progress, log lines and questions of one call
const MAX_EARLY = 100;
const MAX_FRAME_CHARACTERS = 16 << 20;
const HUNG_AFTER_SECS = 30;
const QUIET = new Set(["asks", "task"]); // they may be silent for long

const STATUS_TEXTS = { queued: "waiting", task: "became a task", hung: "no sign of life" };

export class CallsModel extends EventTarget {
  constructor() {
    super();
    this.clear();
  }

  clear() {
    this.server = null;
    this.links = new Map();
    this.calls = new Map();
    this.list = []; // by begin, as far as the events are in order
    this.samples = [];
    this.changes = [];
    this.early = new Map(); // frames whose call has not come yet
    this.lost = 0;
    this.lastEvent = 0;
    this.clockAhead = 0; // seconds that the server's clock is ahead of ours, at least
    this.framed = [];
    this.frameCharacters = 0;
    this.changed();
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }

  apply(event) {
    if (event.kind === "server") {
      const { pid, started_at: begun } = this.server || event;
      if (event.pid !== pid || event.started_at !== begun) this.clear(); // another one: its numbers begin anew
    } else if (event.kind !== "lost") {
      if (event.n <= this.lastEvent) return; // the ring again, after the stream broke off
      this.lastEvent = event.n;
    }
    this.clockAhead = Math.max(this.clockAhead, event.at - Date.now() / 1000);
    const take = TAKE[event.kind];
    if (take) take.call(this, event, this.#callOf(event));
    this.changed();
  }

  now() {
    return Date.now() / 1000 + this.clockAhead;
  }

  #callOf(event) {
    // Without a number, it was refused before it became a call: it gets one that no call has.
    const number = event.call ?? (event.kind === "ended" ? -event.n : undefined);
    if (number === undefined) return null;
    let call = this.calls.get(number);
    if (!call) {
      call = { number, begin: event.at, lastSign: event.at, status: "queued", notes: [], frames: [], polls: 0 };
      this.calls.set(number, call);
      this.list.push(call);
      if (this.list.length > MAX_CALLS) for (const old of this.list.splice(0, MAX_CALLS / 10)) this.calls.delete(old.number);
    }
    call.lastSign = Math.max(call.lastSign, event.at);
    if (event.link) this.join(call, event.link);
    return call;
  }

  join(call, link) {
    call.link = link;
    const opened = this.links.get(link);
    call.client = opened?.client?.name;
    call.revision = opened?.revision;
  }

  /** Marks the calls that have been silent for so long that somebody should look. */
  markHung() {
    const now = this.now();
    let isChanged = false;
    for (const call of this.list) {
      const isHung = isOpen(call) && QUIET.has(call.status) === false && now - call.lastSign > HUNG_AFTER_SECS;
      if (isHung !== Boolean(call.isHung)) isChanged = true;
      call.isHung = isHung;
    }
    if (isChanged) this.changed();
  }

  /** The calls of the same interaction: retries after a question, and the task that it became. */
  interactionOf(call) {
    const first = call.interaction ?? call.number;
    return this.list.filter((each) => (each.interaction ?? each.number) === first);
  }

  countPoll(poll) {
    const owner = this.ownerOf(poll);
    if (owner !== poll) owner.polls += 1;
  }

  /** The call itself, or for a poll the call that became the task. */
  ownerOf(call) {
    if (!isPoll(call)) return call;
    return this.list.findLast((each) => each.task === call.task && !isPoll(each)) || call;
  }

  keepFrame(call, event) {
    call.frames.push(event);
    this.framed.push(call);
    this.frameCharacters += event.frame?.length || 0;
    while (this.frameCharacters > MAX_FRAME_CHARACTERS) {
      const oldest = this.framed.shift().frames.find((each) => each.frame);
      if (!oldest) continue;
      this.frameCharacters -= oldest.frame.length;
      oldest.frame = "";
    }
  }
}

const TAKE = {
  server(event) {
    this.server = event;
  },
  opened(event) {
    this.links.set(event.link, event);
    for (const call of this.list) if (call.link === event.link && !call.client) this.join(call, event.link);
  },
  frame(event, call) {
    const key = `${event.link} ${JSON.stringify(event.id)}`;
    if (call) this.keepFrame(call, event);
    else if (event.way === "in" && event.method && event.id !== undefined) this.early.set(key, event);
    else if (event.way === "out") {
      // The answer to a quick request has no call, only the same id.
      const asked = this.list.slice(-50).findLast((each) => `${each.link} ${JSON.stringify(each.id)}` === key);
      if (asked) this.keepFrame(asked, event);
    }
    if (this.early.size > MAX_EARLY) this.early.delete(this.early.keys().next().value);
  },
  queued(event, call) {
    call.begin = call.queuedAt = event.at;
    Object.assign(call, pick(event, ["method", "name", "id", "arguments", "place", "interaction", "task"]));
    // A frame comes before its call. A stateless client has a link of its own, which its frame did not know yet.
    const early = [...this.early].findLast(([, frame]) => frame.id === event.id && frame.method === event.method);
    const key = [`${event.link} ${JSON.stringify(event.id)}`, early?.[0]].find((each) => this.early.has(each));
    if (key) this.keepFrame(call, this.early.get(key));
    this.early.delete(key);
    if (isPoll(call)) this.countPoll(call);
  },
  started(event, call) {
    call.startedAt = event.at;
    call.waitedMs = event.waited_ms;
    if (isOpen(call)) call.status = "running";
    Object.assign(call, pick(event, ["argv", "cwd", "pid", "way", "variables"]));
  },
  progress(event, call) {
    call.progress = event;
    note(call, event);
  },
  log: (event, call) => note(call, event),
  policy: (event, call) => call && note(call, event),
  asked(event, call) {
    if (isOpen(call)) call.status = "asks";
    note(call, event);
  },
  answered(event, call) {
    if (call.status === "asks" && isOpen(call)) call.status = call.startedAt ? "running" : "queued";
    note(call, event);
  },
  output(event, call) {
    call[event.stream] = event;
  },
  exited(event, call) {
    call.exitedAt = event.at;
    Object.assign(call, pick(event, ["pid", "exit", "signal"]));
    Object.assign(call, { wallMs: event.wall_ms, userMs: event.user_ms, systemMs: event.system_ms, peakKb: event.peak_kb });
  },
  ended(event, call) {
    const { queue_ms: queueMs = 0, run_ms: runMs = 0, write_ms: writeMs = 0 } = event;
    call.status = event.outcome;
    call.isHung = false;
    Object.assign(call, pick(event, ["reason", "method", "name", "bytes", "by", "limit", "task", "interaction"]));
    if (event.outcome === "task") return; // it ends again when the task is over
    call.endedAt = event.at;
    Object.assign(call, { queueMs, runMs, writeMs });
    if (call.queuedAt === undefined) call.begin = event.at - (queueMs + runMs + writeMs) / 1000;
  },
  task(event, call) {
    if (!call) return;
    call.task = event.task;
    keep((call.tasks ||= []), event, MAX_NOTES);
  },
  changed(event) {
    keep(this.changes, event, MAX_CHANGES);
  },
  "left out"(event) {
    keep(this.changes, event, MAX_CHANGES);
  },
  sample(event) {
    keep(this.samples, event, MAX_SAMPLES);
  },
  lost(event) {
    this.lost += event.count;
  },
};

export const statusOf = (call) => (call.isHung ? "hung" : call.status);
export const statusText = (call) => STATUS_TEXTS[statusOf(call)] || call.status;
export const isOpen = (call) => call.endedAt === undefined;

/** Whether it only asks how a task is: that belongs to the call that became the task. */
export const isPoll = ({ method }) => method === "tasks/get" || method === "tasks/result";

export const isFailure = (call) => call.status === "failed" || call.status === "timed out" || call.status === "refused";

/** How long a call took, or has taken until `now`, in milliseconds. */
export const durationOf = (call, now = Date.now() / 1000) => Math.max(0, ((call.endedAt ?? now) - call.begin) * 1000);

export const cpuOf = (call) => (call.userMs === undefined ? undefined : call.userMs + call.systemMs);

/** Where the time went: waiting for a place, starting the process, running, writing the answer. In milliseconds. */
export function segmentsOf(call, now = Date.now() / 1000) {
  const total = durationOf(call, now);
  const write = Math.min(total, call.writeMs ?? 0);
  const queue = Math.min(total - write, call.queueMs ?? call.waitedMs ?? (call.startedAt || call.endedAt ? 0 : total));
  const begun = call.startedAt === undefined ? undefined : (call.startedAt - call.begin) * 1000;
  const start = begun === undefined ? 0 : Math.min(total - queue - write, Math.max(0, begun - queue));
  return { queue, start, run: Math.max(0, total - queue - start - write), write };
}

function note(call, event) {
  keep(call.notes, event, MAX_NOTES);
}

function keep(list, item, most) {
  list.push(item);
  if (list.length > most) list.shift();
}

const pick = (event, names) => Object.fromEntries(names.filter((name) => event[name] !== undefined).map((name) => [name, event[name]]));
