// What every TypeScript client does when HTTP fails it: connections that are lost, sessions that are over. The project is
// that of ../scenario.py. Prints one JSON report; the tests judge it.

import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { proxyTo } from "./proxy.mjs";
import { areAlive, startedPids, until, within } from "./scenario.mjs";

const STEP_PATIENCE_MS = 30_000;

// `open(events, url)` connects a client: {client, transport, isSession, callOptions}.
export async function run(open, root, url) {
  const proxy = await proxyTo(url);
  const events = { lists: 0, updates: [], errors: [] };
  const { client, transport, isSession, callOptions } = await within(STEP_PATIENCE_MS, open(events, proxy.url));
  const call = (name, options = {}) => client.callTool({ name, arguments: {} }, ...callOptions(options));
  const report = { isSession };
  const step = async (name, act) => {
    try {
      report[name] = (await within(STEP_PATIENCE_MS, act())) ?? null;
    } catch (error) {
      report[name] = { thrown: String(error?.message ?? error) };
    }
  };
  // A connection that was kept for later may turn out to be lost only when it is used.
  const untilConnected = () => until(() => client.listTools().then(() => true, () => false));
  if (isSession) await until(() => proxy.streams() === 1);

  await step("calling", async () => {
    const streams = proxy.streams();
    const controller = new AbortController();
    const outcome = call("endless", { signal: controller.signal, timeout: STEP_PATIENCE_MS }).then(
      () => "answered",
      (error) => String(error?.message ?? error),
    );
    const pids = await startedPids(root);
    await until(() => proxy.streams() > streams);
    proxy.cut();
    if (!isSession) {
      await until(async () => !(await areAlive(pids)).includes(true));
      await untilConnected();
      return { text: (await call("weigh")).content[0].text }; // the client itself waits until its time is up
    }
    await untilConnected();
    const wereAlive = await areAlive(pids);
    controller.abort("enough");
    await until(async () => !(await areAlive(pids)).includes(true));
    return { outcome: await outcome, wereAlive };
  });
  if (isSession) {
    await step("resuming", async () => {
      const resumed = proxy.resumed();
      const steps = [];
      const result = call("walk", {
        timeout: STEP_PATIENCE_MS,
        onprogress: ({ progress }) => {
          steps.push(progress);
          if (progress === 90) proxy.cut();
        },
      });
      result.catch(() => {}); // it is awaited below
      await until(() => proxy.resumed() > resumed);
      // Twice in a row, and the second connection has brought nothing.
      const streams = proxy.streams();
      await until(() => proxy.streams() > streams || proxy.resumed() > resumed + 1);
      proxy.cut();
      await writeFile(join(root, "seen"), "");
      return { steps, text: (await result).content[0].text };
    });
    await step("hearing", async () => {
      const uri = new URL(`file://${join(root, "resources", "letter.txt")}`).href;
      await client.subscribeResource({ uri });
      proxy.cut();
      await rename(join(root, "aside", "letter.new"), join(root, "resources", "letter.txt"));
      await rename(join(root, "aside", "latecomer"), join(root, "tools", "latecomer"));
      await until(() => events.updates.includes(uri) && events.lists > 0);
      return { names: (await client.listTools()).tools.map((tool) => tool.name) };
    });
    await step("ended", async () => {
      const headers = { "Mcp-Session-Id": transport.sessionId, "MCP-Protocol-Version": transport.protocolVersion };
      const deleted = await fetch(url, { method: "DELETE", headers });
      const told = await client.listTools().then(
        () => null,
        (error) => ({ code: error.code, status: error.data?.status ?? error.status, message: String(error.message) }),
      );
      const again = await open({ ...events, errors: [] }, proxy.url);
      const result = await again.client.callTool({ name: "latecomer", arguments: {} }, ...again.callOptions({}));
      await again.transport.terminateSession();
      await again.client.close();
      return { status: deleted.status, told, text: result.content[0].text };
    });
  }
  await client.close();
  proxy.close();
  proxy.cut();
  console.log(JSON.stringify(report));
}
