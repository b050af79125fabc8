// What every TypeScript client does with the project of ../scenario.py. Prints one JSON report; the tests judge it.

import { createHash } from "node:crypto";
import { access, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const STEP_PATIENCE_MS = 15_000;
const POLL_MS = 10;

// `open(events)` connects a client whose notifications go to `events`: {client, transport, callOptions, setLevel, subscribe}.
export async function run(open, root) {
  const report = {};
  const step = async (name, act) => {
    try {
      report[name] = (await within(STEP_PATIENCE_MS, act())) ?? null;
    } catch (error) {
      report[name] = { thrown: { name: error?.name, code: error?.code, message: String(error?.message ?? error) } };
    }
  };
  const rootAt = (name) => ({ uri: pathToFileURL(join(root, name)).href, name });
  const roots = [rootAt("tools"), rootAt("aside")];
  const events = { logs: [], errors: [], toolLists: [], updates: [], roots, onLog: () => {}, onTools: () => {} };
  const session = await within(STEP_PATIENCE_MS, open(events));
  const { client, transport } = session;
  const call = (name, args = {}, options = {}, meta = undefined) =>
    client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, ...session.callOptions(options));
  const seen = () => writeFile(join(root, "seen"), "");

  await step("meeting", async () => ({ server: client.getServerVersion(), ...session.agreement() }));
  await step("list", () => client.listTools());
  await step("roots", async () => {
    const where = async () => (await call("where")).content[0].text.split("\n");
    const first = await where();
    if (session.agreement().era === "legacy") {
      events.roots = [rootAt("aside")];
      await client.sendRootsListChanged();
      await until(async () => (await where()).length === 1);
    }
    return { first, last: await where() };
  });
  await step("text", () => call("greet", { name: "Zoë" }));
  await step("structured", () => call("weigh"));
  await step("failing", () => call("broken"));
  await step("badArguments", () => call("greet", { name: 5 }));
  await step("unknownTool", () => call("absent"));
  await step("progress", async () => {
    const heard = [];
    const onprogress = (progress) => {
      heard.push(progress);
      if (progress.progress === 90) seen();
    };
    const result = await call("walk", {}, { onprogress });
    return { heard, result };
  });
  await step("log", async () => {
    const meta = await session.setLevel("warning");
    events.onLog = (message) => message.level === "error" && seen();
    const result = await call("narrate", {}, {}, meta);
    return { heard: events.logs.filter((message) => message.logger === "story"), result };
  });
  await step("cancel", async () => {
    const controller = new AbortController();
    const outcome = call("endless", {}, { signal: controller.signal }).then(
      () => "answered",
      () => "rejected",
    );
    const pids = await startedPids(root);
    const wereAlive = await areAlive(pids);
    controller.abort("enough");
    const said = await outcome;
    // Before we leave: that would end them as well.
    await until(async () => !(await areAlive(pids)).includes(true));
    return { pids, wereAlive, outcome: said, afterwards: await call("greet", { name: "again" }) };
  });
  await step("added", async () => {
    const announced = new Promise((resolve) => (events.onTools = resolve));
    await rename(join(root, "aside", "latecomer"), join(root, "tools", "latecomer"));
    const tools = await announced;
    const listed = await client.listTools();
    const names = (list) => list.map((tool) => tool.name);
    return { announced: names(tools), listed: names(listed.tools), result: await call("latecomer") };
  });
  const uriOf = (name) => pathToFileURL(join(root, "resources", name)).href;
  await step("resources", async () => {
    const { resources } = await client.listResources();
    const [letter] = (await client.readResource({ uri: uriOf("letter.txt") })).contents;
    const [picture] = (await client.readResource({ uri: uriOf("picture.png") })).contents;
    const digest = createHash("sha256").update(Buffer.from(picture.blob, "base64")).digest("hex");
    return { names: resources.map((resource) => resource.name), letter, picture: { type: picture.mimeType, digest } };
  });
  await step("absentResource", () => client.readResource({ uri: uriOf("absent.txt") }));
  await step("templates", async () => {
    const { resourceTemplates } = await client.listResourceTemplates();
    const ref = { type: "ref/resource", uri: resourceTemplates[0].uriTemplate };
    const { completion } = await client.complete({ ref, argument: { name: "word", value: "hel" } });
    const [said] = (await client.readResource({ uri: "echo://hello" })).contents;
    return { names: resourceTemplates.map((template) => template.name), values: completion.values, said: said.text };
  });
  await step("subscription", async () => {
    const uris = [uriOf("letter.txt"), uriOf("marker.txt")];
    const unsubscribe = await session.subscribe(uris);
    await rename(join(root, "aside", "letter.new"), join(root, "resources", "letter.txt"));
    await until(() => events.updates.includes(uris[0]));
    await writeFile(join(root, "resources", "marker.txt"), "1");
    await until(() => events.updates.includes(uris[1]));
    await unsubscribe();
    const [letter] = (await client.readResource({ uri: uris[0] })).contents;
    return { heard: events.updates.filter((uri) => uri === uris[0]).length, text: letter.text };
  });
  await step("prompt", async () => {
    const { prompts } = await client.listPrompts();
    const ref = { type: "ref/prompt", name: "invite" };
    const { completion } = await client.complete({ ref, argument: { name: "tone", value: "f" } });
    const filled = await client.getPrompt({ name: "invite", arguments: { guest: "Zoë", tone: "funny" } });
    return { arguments: prompts[0].arguments, values: completion.values, messages: filled.messages };
  });
  await step("close", () => leave(client, transport));
  await step("leavingInACall", async () => {
    await rename(join(root, "pids"), join(root, "pids.of-the-cancelled-call"));
    const { client, transport, callOptions } = await open({ ...events, errors: [] });
    client.callTool({ name: "endless", arguments: {} }, ...callOptions({})).catch(() => {});
    const pids = await startedPids(root);
    const ending = await leave(client, transport);
    if (ending.wasSession) {
      // Somebody else's request: by the time of its answer, the server knows that the connections are gone.
      const { client, transport, callOptions } = await open({ ...events, errors: [] });
      await client.callTool({ name: "greet", arguments: { name: "you" } }, ...callOptions({}));
      await leave(client, transport);
      return { pids, ...ending, areAlive: await areAlive(pids) };
    }
    await until(async () => !(await areAlive(pids)).includes(true));
    return { pids, ...ending };
  });
  // Whatever the client found odd in what we sent; that it has closed its own streams it reports as well.
  report.errors = events.errors.filter((error) => !error.includes("AbortError"));
  console.log(JSON.stringify(report));
}

// How the server process ends when the client closes: by itself with a status, or by a signal of the client. A server
// that others use as well goes on.
async function leave(client, transport) {
  const server = transport._process; // there is no public way to learn its exit status
  if (!server) {
    const wasSession = Boolean(transport.sessionId);
    await client.close();
    return { wasSession };
  }
  const exited = new Promise((resolve) => server.once("exit", (code, signal) => resolve({ code, signal })));
  const startedAt = performance.now();
  await client.close();
  const ending = await exited;
  return { ...ending, closedMs: performance.now() - startedAt };
}

export async function startedPids(root) {
  const path = join(root, "pids");
  await until(() => access(path).then(() => true, () => false));
  return (await readFile(path, "utf8")).trim().split(" ").map(Number);
}

export function areAlive(pids) {
  return Promise.all(
    pids.map(async (pid) => {
      try {
        const stat = await readFile(`/proc/${pid}/stat`, "utf8");
        return stat.slice(stat.lastIndexOf(")") + 2)[0] !== "Z";
      } catch {
        return false;
      }
    }),
  );
}

export async function until(condition) {
  const giveUpAt = performance.now() + STEP_PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`still false: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

export async function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
